"""What the kit's checks share: classes to check, a sentence for failures, pictures of tensors before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any, NoReturn
from unittest import mock

import torch
from torch import Tensor

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Local
from leaktight.core.torch_private import TorchDispatchMode

Picture = dict[str, tuple[torch.dtype, tuple[int, ...], bytes]]


class ConformanceError(LeaktightError):
    """A class does not keep a promise that every class of its family makes."""


def installed_classes(family: str) -> dict[str, type[Any]]:
    """Return the classes of a family that come in through an entry point, by kind; what a test defines is left out.

    Example:
        >>> "gaussian_noise" in installed_classes("defence")
        True
    """
    packages = {point.module.split(".")[0] for point in entry_points(group="leaktight.plugins")}
    return {
        kind: final for kind, final in registry.classes(family).items() if final.__module__.split(".")[0] in packages
    }


def sample(final: type[Any]) -> Any | None:
    """Return a class at its defaults, or None if it has settings without a default.

    Example:
        >>> from leaktight.defences import Pruning
        >>> sample(Pruning)
        Pruning(kind='pruning', rate=0.9)
    """
    try:
        return final()
    except InvalidValue:
        return None


def require(kept: bool, sentence: str) -> None:
    """Raise a `ConformanceError` with this sentence unless the promise is kept.

    Example:
        >>> require(1 + 1 == 3, "One and one must be three.")
        Traceback (most recent call last):
        leaktight.testing.conformance.ConformanceError: One and one must be three.
    """
    if not kept:
        raise ConformanceError(sentence)


def picture(tensors: Mapping[str, Tensor]) -> Picture:
    """Return names, types, shapes and bytes of tensors: two pictures are equal if and only if everything is.

    Example:
        >>> picture({"a": torch.tensor([0.0])}) == picture({"a": torch.tensor([-0.0])})
        False
    """
    return {
        name: (t.dtype, tuple(t.shape), t.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        for name, t in tensors.items()
    }


@contextmanager
def require_unchanged(who: str, **things: Mapping[str, Tensor]) -> Iterator[None]:
    """Require that named groups of tensors are the same after the block as before it, byte by byte.

    Args:
        who: the subject of the error's sentence, as in "top_k(share=0.5) in on_message".
        **things: the groups, by what they are.
    """
    before = {what: picture(tensors) for what, tensors in things.items()}
    yield
    for what, tensors in things.items():
        require(picture(tensors) == before[what], f"{who} must leave its input unchanged. Its {what} changed in place.")


@contextmanager
def own_randomness(who: str) -> Iterator[None]:
    """Require that the block leaves torch's global generator alone.

    Args:
        who: the subject of the error's sentence.
    """
    before = torch.random.get_rng_state()
    yield
    touched = not torch.equal(before, torch.random.get_rng_state())
    torch.random.set_rng_state(before)
    require(not touched, f"{who} must draw from the stream it is given. It drew from torch's global generator.")


@contextmanager
def own_draws(who: str, local: Local) -> Iterator[None]:
    """Require that nothing in the block draws random numbers but from a Local's key.

    A Local without a key is not watched.

    Args:
        who: the subject of the error's sentence.
        local: the party's.
    """
    if local.key is None:
        yield
        return
    sentence = (
        f"{who} must draw its random numbers from `local.draws`. It drew from another generator, whose numbers can be "
        "drawn again."
    )

    def refuse(*_: object, **__: object) -> NoReturn:
        raise ConformanceError(sentence)

    with _Watch(sentence), mock.patch("numpy.random.default_rng", refuse):
        yield


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raises at the first random operation of torch."""

    def __init__(self, sentence: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sentence = sentence

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        require(torch.Tag.nondeterministic_seeded not in func.tags, self.sentence)
        return func(*args, **(kwargs or {}))


def finite(tensors: Mapping[str, Tensor]) -> bool:
    """Return whether all tensors hold finite numbers only."""
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())


def close(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Return whether two groups of tensors are equal but for rounding."""
    same_names = one.keys() == other.keys()
    return same_names and all(torch.allclose(t, other[name], rtol=1e-4, atol=1e-7) for name, t in one.items())


def plain(memory: object) -> bool:
    """Return whether a memory holds tensors, numbers and nested dictionaries of them, and nothing else.

    Example:
        >>> plain({"residual": {"weight": torch.zeros(2)}, "steps": 3}), plain({"accountant": object()})
        (True, False)
    """
    if isinstance(memory, dict):
        return all(isinstance(name, str) and plain(value) for name, value in memory.items())
    return isinstance(memory, Tensor | float | int)


def contains(tensor: Tensor, secret: Tensor) -> bool:
    """Return whether a tensor holds the secret's numbers, one after the other.

    Example:
        >>> secret = torch.tensor([3, 1])
        >>> contains(torch.tensor([0.5, 3.0, 1.0, 2.0]), secret), contains(torch.zeros(4), secret)
        (True, False)
    """
    row, wanted = tensor.detach().flatten().double(), secret.flatten().to(tensor.dtype).double()
    return len(row) >= len(wanted) and bool((row.unfold(0, len(wanted), 1) == wanted).all(1).any())
