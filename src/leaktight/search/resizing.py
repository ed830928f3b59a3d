"""Resizing: images that are too small for a network are brought to the smallest side that it takes."""

from __future__ import annotations

from leaktight.core.errors import InvalidValue
from leaktight.data.source import Source
from leaktight.models.network import Network

SIDES = (16, 28, 32, 48, 64, 96, 128, 224)
"""The sides that are tried, in pixels."""


def enlarge_for(data: Source, model: Network) -> Source:
    """Return data whose images a network takes: the same if it takes them as they are.

    Args:
        data: images, of a source that can bring them to a size.
        model: the network.

    Raises:
        InvalidValue: the source cannot bring images to a size, or no side would do.

    Example:
        >>> from leaktight.data import Digits
        >>> from leaktight.models import MLP, LeNet
        >>> enlarge_for(Digits(), LeNet()).size, enlarge_for(Digits(), MLP()).size
        (16, 8)
    """
    loaded = data.load()
    reason = _reason(model, loaded.shape, loaded.classes)
    if not reason or len(loaded.shape) != 3:
        return data
    if "size" not in type(data).model_fields:
        raise InvalidValue(f"{reason} The data `{data.kind}` cannot be resized here; enlarge the images first.")
    channels, *sides = loaded.shape
    for side in SIDES:
        if side > min(sides) and not _reason(model, (channels, side, side), loaded.classes):
            return type(data).model_validate({**data.to_dict(), "size": side})
    raise InvalidValue(f"{reason} No side of up to {SIDES[-1]} pixels would do.")


def _reason(model: Network, shape: tuple[int, ...], classes: int) -> str:
    """Return why a network does not take images of a shape; empty if it does."""
    try:
        model.size(shape, classes)
    except InvalidValue as error:
        return str(error)
    return ""
