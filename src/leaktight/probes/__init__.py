"""Measurements on a run, beside attacks that are graded."""

from leaktight.probes.class_gradients import ClassGradients
from leaktight.probes.mutual_information import MutualInformation
from leaktight.probes.sensitivity import Sensitivity
from leaktight.probes.utility import Utility
from leaktight.probes.v_information import VInformation

__all__ = ["ClassGradients", "MutualInformation", "Sensitivity", "Utility", "VInformation"]
