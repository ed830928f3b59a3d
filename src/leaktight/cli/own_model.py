"""A person's own model on the command line: settings that no bundled network has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaktight.models.network import Network


def set_own(model: Network | None, **given: str | None) -> Network | None:
    """Return a person's own model with the settings that the command line gives; another model takes none.

    Args:
        model: what `--model` names; None if nothing does.
        given: settings of `models.Factory`, by name; None for one that was not given.

    Raises:
        InvalidValue: a setting was given, and the model is not a person's own.

    Example:
        >>> from leaktight.models import from_text
        >>> set_own(from_text("mine:net"), head="classifier.2", output=None).head
        'classifier.2'
    """
    from leaktight.core.errors import InvalidValue
    from leaktight.models import Factory

    chosen = {name: value for name, value in given.items() if value is not None}
    if not chosen:
        return model
    if not isinstance(model, Factory):
        option = "--" + next(iter(chosen)).replace("_", "-")
        what = "names a layer of" if option == "--head" else "is a setting of"
        raise InvalidValue(f"`{option}` {what} your own model. Give that with `--model package.module:function`.")
    return Factory.model_validate({**dict(model), **chosen})
