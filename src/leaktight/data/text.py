"""Text: what one word on the command line means as a source of data."""

from __future__ import annotations

from pathlib import Path

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.factory import is_reference
from leaktight.data.factory import Factory
from leaktight.data.files import FileSource
from leaktight.data.source import Source
from leaktight.data.table import ENDINGS, Csv

_READABLE = "an .npz or .csv file, or a folder with IDX files, CIFAR .bin batches or a sub-folder of images per class"


def from_text(text: str) -> Source:
    """Return the source that a text names, for `--data`.

    Args:
        text: the name of a source that needs no settings (`digits`, `photos`); or `package.module:function`; or the
            path of an `.npz` file, a `.csv` file (with `:column` after it to name the label), or a folder with IDX
            files, CIFAR batches or a sub-folder of images for each class.

    Example:
        >>> print(from_text("photos"))
        photos
        >>> print(from_text("my_project.data:load"))
        factory(function='my_project.data:load')
    """
    known = registry.classes(Source.family)
    ready = {
        kind: final
        for kind, final in known.items()
        if not any(field.is_required() for field in final.model_fields.values())
    }
    if text in ready:
        source: Source = ready[text]()
        return source
    path = Path(text).expanduser()
    if text and path.exists():
        return _at(text, path, known)
    file, colon, label = text.rpartition(":")
    # A module may be named `data` as well as a table may end so.
    is_module = file.lower().endswith(".data") and is_reference(text) and not Path(file).expanduser().exists()
    if colon and file.lower().endswith(ENDINGS) and not is_module:
        if not Path(file).expanduser().exists():
            raise _absent(file)
        return Csv(path=file, label=label)
    if is_reference(text):
        return Factory(function=text)
    if text in known:
        needed = [f"`{name}`" for name, field in known[text].model_fields.items() if field.is_required()]
        raise InvalidValue(
            f"The data kind `{text}` needs {' and '.join(needed)}. Give a path or `package.module:function` here, or "
            "set it in a file."
        )
    if "/" in text or "\\" in text or path.suffix:
        raise _absent(text)
    raise InvalidValue(
        f"There is no data named `{text}`, and no such file or folder. {did_you_mean(text, ready)} A path or "
        "`package.module:function` will do too."
    )


def _absent(text: str) -> InvalidValue:
    return InvalidValue(f"There is no file or folder `{text}`. Check the path; it may be {_READABLE}.")


def _at(text: str, path: Path, known: dict[str, type[Source]]) -> Source:
    readers = [final for final in known.values() if issubclass(final, FileSource)]
    reader = next((final for final in readers if final.fits(path)), None)
    if reader is None:
        raise InvalidValue(
            f"The data at `{text}` must be {_READABLE}. Got none of these; anything else can come from "
            "`package.module:function`."
        )
    return reader(path=text)
