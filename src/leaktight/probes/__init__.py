"""Measurements on a run, beside attacks that are graded."""

from leaktight.probes.accuracy_score import AccuracyScore
from leaktight.probes.class_gradients import ClassGradients
from leaktight.probes.counterfactual import Counterfactual
from leaktight.probes.head_features import HeadFeatures
from leaktight.probes.learning_curve import LearningCurve
from leaktight.probes.mutual_information import MutualInformation
from leaktight.probes.participant_accuracy import ParticipantAccuracy
from leaktight.probes.privacy_score import PrivacyScore
from leaktight.probes.remaining_leak import RemainingLeak
from leaktight.probes.sensitivity import Sensitivity
from leaktight.probes.similarity_path import SimilarityPath
from leaktight.probes.utility import Utility
from leaktight.probes.v_information import VInformation

__all__ = [
    "AccuracyScore",
    "ClassGradients",
    "Counterfactual",
    "HeadFeatures",
    "LearningCurve",
    "MutualInformation",
    "ParticipantAccuracy",
    "PrivacyScore",
    "RemainingLeak",
    "Sensitivity",
    "SimilarityPath",
    "Utility",
    "VInformation",
]
