"""Origins: what a result was made from that its settings only name: data, model, a person's own code, and versions."""

from __future__ import annotations

import hashlib
import inspect
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache, singledispatch
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import leaktight
from leaktight.captures import Captured
from leaktight.captures.tensors import LARGEST_FILE
from leaktight.core.defence import Defence
from leaktight.core.factory import load_object
from leaktight.core.input_file import digest_input
from leaktight.core.scenario import Scenario
from leaktight.core.value import Value
from leaktight.data.source import Data
from leaktight.learning.federated import Federated
from leaktight.learning.split import Split
from leaktight.learning.standalone import Standalone
from leaktight.models import Factory

PACKAGES = ("numpy", "scipy", "scikit-learn", "opacus", "pillow")


class Origins:
    """Fingerprints for one run of an audit: each scenario is looked at once for each seed.

    A file can be replaced, a function edited and a package upgraded while the settings stay the same; a result that was made
    with something else has another fingerprint, and is made again.
    """

    def __init__(self) -> None:
        self._contents: dict[tuple[str, int], str] = {}

    def of(self, scenario: Scenario, seed: int, *parts: Value) -> str:
        """Return the fingerprint of what a scenario and these parts are made from.

        Args:
            scenario: whose data and model are looked at.
            seed: what the model's initial parameters derive from.
            parts: defence and probe, whose classes may be a person's own.
        """
        place = scenario.key, seed
        if place not in self._contents:
            self._contents[place] = contents(scenario, seed)
        return _digest(leaktight.__version__, str(torch.__version__), self._contents[place], *_code((scenario, *parts)))[:16]


@singledispatch
def contents(scenario: Scenario, seed: int) -> str:
    """Return a fingerprint of the data and the model that a scenario names; nothing is known of a kind without its own answer.

    A scenario of a new kind registers its own answer with `contents.register`.
    """
    return ""


@contents.register
def _(scenario: Federated, seed: int) -> str:
    data = scenario.data.load()
    model = scenario.task(data, seed).model
    return _digest(_of_data(data), str(model), *_bytes(model.state_dict()))


@contents.register
def _(scenario: Standalone, seed: int) -> str:
    return contents(scenario.federation, seed)


@contents.register
def _(scenario: Split, seed: int) -> str:
    data = scenario.data.load()
    made = scenario.halves(data, seed)
    return _digest(
        _of_data(data), *(part for half in (made.bottom, made.top) for part in (str(half), *_bytes(half.state_dict())))
    )


@contents.register
def _(scenario: Captured, seed: int) -> str:
    public = [_of_data(scenario.public.load())] if scenario.public is not None else []
    return _digest(*(part for path in scenario.files() for part in (path.name, digest_input(path, LARGEST_FILE))), *public)


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {
        "leaktight": leaktight.__version__,
        "torch": str(torch.__version__),
        **{name: metadata.version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


@lru_cache(maxsize=1)
def _of_data(data: Data) -> str:
    tensors = {
        f"{part} {name}": tensor
        for part, batch in (("train", data.train), ("test", data.test))
        for name, tensor in (("x", batch.inputs), ("y", batch.labels), ("property", batch.properties))
        if tensor is not None
    }
    return _digest(str(data.classes), data.property_name, *data.names, *_bytes(tensors))


def _bytes(tensors: Mapping[str, Tensor]) -> Iterator[Any]:
    for name, tensor in tensors.items():
        yield f"{name} {tensor.dtype} {tuple(tensor.shape)}"
        yield tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()


def _code(values: Iterable[Any]) -> Iterator[str]:
    """Return the fingerprint of every source file outside this package that the classes and functions of values come from."""
    for value in values:
        if isinstance(value, Value):
            yield _source(type(value))
            if isinstance(value, Defence):
                yield repr(value.stamp())
            if isinstance(value, Factory):
                own = load_object(value.function)
                made: Any = own if inspect.isroutine(own) or inspect.isclass(own) else type(own)
                yield _source(made)
                yield _source(sys.modules[value.function.partition(":")[0]])
            yield from _code(part for _, part in value)
        elif isinstance(value, dict):
            yield from _code(value.values())
        elif isinstance(value, tuple):
            yield from _code(value)


@cache
def _source(made: Any) -> str:
    """Return the fingerprint of the file that a module, class or function was loaded from, as it was when first asked for.

    A module that was imported and then edited still does what it did.
    """
    module = made.__name__ if inspect.ismodule(made) else made.__module__
    if f"{module}.".startswith("leaktight."):
        return ""
    try:
        return _digest(Path(inspect.getsourcefile(made) or "").read_bytes())
    except (TypeError, OSError):
        # What is built in, or was typed into a terminal, has no file.
        return ""


def _digest(*parts: Any) -> str:
    """Return the hash of texts and bytes; where one ends and the next begins counts."""
    found = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        found.update(len(content).to_bytes(8, "big"))
        found.update(content)
    return found.hexdigest()
