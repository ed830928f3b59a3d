"""Measurements that need no attack."""

from leaktight.probes.class_gradients import ClassGradients
from leaktight.probes.utility import Utility

__all__ = ["ClassGradients", "Utility"]
