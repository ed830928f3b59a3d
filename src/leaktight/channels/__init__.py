"""Channels: the stages that defences state their channels in, and how likely a message is under them."""

from leaktight.channels.calibration import deviations, standardise
from leaktight.channels.clip import Clip
from leaktight.channels.gradient import outward, push_examples
from leaktight.channels.largest import KeepLargest
from leaktight.channels.layers import Drop, OnLayers
from leaktight.channels.likelihood import negative_log_likelihood
from leaktight.channels.noise import AddNoise, StatedNoise

__all__ = [
    "AddNoise",
    "Clip",
    "Drop",
    "KeepLargest",
    "OnLayers",
    "StatedNoise",
    "deviations",
    "negative_log_likelihood",
    "outward",
    "push_examples",
    "standardise",
]
