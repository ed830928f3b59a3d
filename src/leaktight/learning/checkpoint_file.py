"""Checkpoint files: a party's state on disk, for its owner alone, so that a training outlives its process."""

from __future__ import annotations

from pathlib import Path

from leaktight.core.archive import pack, read_archive
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Memory
from leaktight.core.private import reason, write_private
from leaktight.core.scenario import flatten, unflatten

FORMAT = 1


def write_checkpoint(path: Path, state: Memory) -> None:
    """Write what a party's `state()` returned: either all of it is there afterwards, or the file is as it was.

    The file has mode 0600. It holds the party's own parameters and memory, so it is nothing to be shared with the other party.

    Args:
        path: the file.
        state: tensors and numbers by nested name.

    Example:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_checkpoint(Path(folder) / "party.safetensors", {"step": 3.0, "model": {"weight": torch.ones(2)}})
        ...     read_checkpoint(Path(folder) / "party.safetensors")
        {'step': 3.0, 'model': {'weight': tensor([1., 1.])}}
    """
    write_private(path, pack(flatten(state), {"format": FORMAT}))


def read_checkpoint(path: Path) -> Memory:
    """Return a state as `restore` takes it.

    Raises:
        InvalidValue: the file cannot be read, or is not a whole checkpoint.
    """
    try:
        values, about = read_archive(path)
        if about.get("format") != FORMAT:
            raise LeaktightError(f"It has format {about.get('format')!r}.")
    except OSError as error:
        raise InvalidValue(f"The checkpoint `{path}` cannot be read: {reason(error)}. Name another one.") from error
    except InvalidValue:
        raise
    except LeaktightError as error:
        raise InvalidValue(
            f"The file `{path}` must be a whole checkpoint of this version. It is not; go on from an earlier one, or start anew."
        ) from error
    return unflatten(values)
