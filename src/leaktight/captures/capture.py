"""Captures: messages that crossed the wire, written down as tensors and a manifest each."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from leaktight.captures.manifest import ENDING, Manifest, read_manifest
from leaktight.core.document import parse_json
from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import GIBIBYTE, open_input
from leaktight.core.message import Tensors
from leaktight.core.private import private_folder, reason, write_private
from leaktight.core.tensor_file import DamagedTensors, load_tensors

LARGEST_FILE = 4 * GIBIBYTE
"""How many bytes the tensors of one message may have."""
_ORDER = "order"


@dataclasses.dataclass(frozen=True)
class Capture:
    """One message: what is known of it, and where its tensors are.

    Args:
        folder: where the files lie.
        manifest: what is known of it.
    """

    folder: Path
    manifest: Manifest

    def tensors(self) -> dict[str, Tensor]:
        """Read what was sent, by name; numbers that are not finite are an error: nothing can be matched with them."""
        return _read_finite(self.folder / self.manifest.tensors)

    def parameters(self) -> dict[str, Tensor]:
        """Read what the sender had been sent, by name, buffers included."""
        return _read_finite(self.folder / self.manifest.parameters)


def write_capture(folder: Path, parameters: Tensors, sent: Tensors, **known: Any) -> Manifest:
    """Write one message for its owner alone: tensors first, the manifest last, so that what has one is whole.

    Parameters that several messages answer are kept once: their file is named by their content. A message of the same
    sender and round that was written before is replaced.

    Args:
        folder: where to write; made if need be.
        parameters: what the sender was sent, by name.
        sent: what it answered: a gradient or an update, by name.
        known: the fields of `Manifest` but the names of the files.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ones = {"weight": torch.ones(2)}
        ...     _ = write_capture(Path(folder), ones, ones, kind="gradient", sender="client-0", round=0, examples=1)
        ...     [capture] = read_captures(Path(folder))
        ...     capture.tensors()
        {'weight': tensor([1., 1.])}
    """
    before, after = pack_tensors(dict(parameters)), pack_tensors(dict(sent))
    stem = _stem(str(known["sender"]), int(known["round"]))
    manifest = Manifest(
        tensors=f"{stem}.safetensors",
        parameters=f"parameters-{hashlib.sha256(before).hexdigest()[:16]}.safetensors",
        **known,
    )
    if not (private_folder(folder) / manifest.parameters).is_file():
        write_private(folder / manifest.parameters, before)
    write_private(folder / manifest.tensors, after)
    write_private(folder / f"{stem}{ENDING}", json.dumps(manifest.to_dict(), indent=1).encode())
    return manifest


def read_captures(folder: Path) -> list[Capture]:
    """Return the captures of a folder by round and sender; their tensors are read when they are asked for.

    Raises:
        InvalidValue: there is no such folder, nothing is in it, a manifest cannot be used, or two speak of the same
            message.
    """
    if not folder.is_dir():
        raise InvalidValue(f"There is no folder `{folder}` with captures. Name the one that messages were recorded to.")
    captures = [Capture(folder, read_manifest(path)) for path in sorted(folder.glob(f"*{ENDING}"))]
    if not captures:
        raise InvalidValue(
            f"The folder `{folder}` holds no captures (`*{ENDING}`). Name the one that messages were recorded to."
        )
    seen: set[str] = set()
    for capture in captures:
        if capture.manifest.name in seen:
            raise InvalidValue(
                f"The folder `{folder}` holds two captures of what {capture.manifest.sender} sent in round "
                f"{capture.manifest.round}. Keep the messages of each run in a folder of their own."
            )
        seen.add(capture.manifest.name)
    return sorted(captures, key=lambda capture: (capture.manifest.round, capture.manifest.sender))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a tensor file, in the order in which it was written if it says so.

    Raises:
        InvalidValue: it cannot be read, is cut, too large, or its header does not fit its content.
    """
    try:
        with open_input(path, LARGEST_FILE) as file:
            tensors, words = load_tensors(file, os.fstat(file.fileno()).st_size)
        names = parse_json(words.get(_ORDER, "[]").encode())
    except OSError as error:
        raise InvalidValue(f"The tensor file `{path}` cannot be read: {reason(error)}.") from error
    except DamagedTensors as error:
        raise InvalidValue(f"The tensor file `{path.name}` {error}. Record the messages again.") from error
    except ValueError as error:
        raise InvalidValue(
            f"The order in the tensor file `{path.name}` cannot be read. Record the messages again."
        ) from error
    known = (
        isinstance(names, list) and all(isinstance(name, str) for name in names) and sorted(names) == sorted(tensors)
    )
    return {name: tensors[name] for name in (names if known else tensors)}


def pack_tensors(tensors: dict[str, Tensor]) -> bytes:
    """Return tensors as safetensors that remember their order."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    return safetensors.torch.save(plain, metadata={_ORDER: json.dumps(list(plain))})


def make_capture_folder(folder: Path) -> Path:
    """Return a folder, made if need be, or raise the error for one that holds the messages of another run already."""
    folder = private_folder(folder.expanduser())
    if any(folder.glob(f"*{ENDING}")):
        raise InvalidValue(
            f"The folder `{folder}` holds captures already. Choose another one, so that runs do not mix."
        )
    return folder


def next_round(folder: Path, sender: str) -> int:
    """Return the number after the last round of a sender in a folder, where nobody says which round it is; from 1.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     next_round(Path(folder), "client-0")
        1
    """
    own = _stem(sender, 0).removesuffix("0")
    ends = (path.name.removesuffix(ENDING).removeprefix(own) for path in folder.glob(f"{own}*{ENDING}"))
    return max((int(end) for end in ends if end.isdecimal()), default=0) + 1


def difference(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return new minus old for every floating tensor that is in both, in at least single precision.

    Example:
        >>> before = {"weight": torch.ones(2), "steps": torch.tensor(1)}
        >>> difference(before, {"weight": torch.zeros(2), "steps": torch.tensor(2)})
        {'weight': tensor([-1., -1.])}
    """
    update = {}
    for name, old in before.items():
        new = after.get(name)
        if new is None or not old.is_floating_point():
            continue
        if new.shape != old.shape:
            raise InvalidValue(
                f"The tensor `{name}` must keep its shape {tuple(old.shape)}. Got {tuple(new.shape)} instead."
            )
        wide = torch.promote_types(old.dtype, torch.float32)
        update[name] = new.detach().to("cpu", wide) - old.detach().to("cpu", wide)
    return update


def _stem(sender: str, round: int) -> str:
    """Return a file's name that two senders never share, whatever characters are in theirs."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "-", sender)[:40]
    mark = "" if safe == sender else f"-{hashlib.sha256(sender.encode()).hexdigest()[:8]}"
    return f"message-{safe}{mark}-{round}"


def _read_finite(path: Path) -> dict[str, Tensor]:
    tensors = read_tensors(path)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise InvalidValue(
                f"The tensor `{name}` in `{path.name}` holds numbers that are not finite. Nothing can be read off them."
            )
    return tensors
