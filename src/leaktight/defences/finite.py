"""Finite numbers only: what a defence cannot protect must not go out."""

from __future__ import annotations

import torch

from leaktight.core.errors import InvalidValue
from leaktight.core.message import Message, Tensors


def finite_tensors(tensors: Tensors, owner: str) -> Tensors:
    """Return the tensors, or raise if one of them is not made of finite real numbers.

    Noise, norms and rankings mean nothing on NaN or infinity: an entry that is infinite stays infinite under any noise,
    and a norm that is NaN is below every clipping threshold.

    Args:
        tensors: what is to be protected, by name.
        owner: whose tensors they are, as the subject of the error's sentence.

    Example:
        >>> finite_tensors({"weight": torch.tensor([1.0, float("nan")])}, "A message")
        Traceback (most recent call last):
        leaktight.core.errors.InvalidValue: A message must hold finite numbers. \
Got NaN or infinity in `weight` instead; lower the learning rate or look at the data.
    """
    whole = [name for name, tensor in tensors.items() if not tensor.is_floating_point()]
    if whole:
        raise InvalidValue(f"{owner} must hold floating-point numbers. Got another type in {_names(whole)} instead.")
    broken = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
    if broken:
        raise InvalidValue(
            f"{owner} must hold finite numbers. Got NaN or infinity in {_names(broken)} instead; "
            "lower the learning rate or look at the data."
        )
    return tensors


def finite(message: Message, kind: str) -> Message:
    """Return the message, or raise if it holds anything but finite numbers.

    Args:
        message: what goes into a defence, or comes out of it.
        kind: the defence's kind, for the error's sentence.
    """
    finite_tensors(message.tensors, f"The {message.kind} of {message.sender} in round {message.round} under {kind}")
    return message


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
