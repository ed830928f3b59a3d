"""Defences, one file per idea."""

from leaktight.defences.class_keys import ClassKeys
from leaktight.defences.dp_sgd import DPSGD
from leaktight.defences.gaussian import GaussianNoise
from leaktight.defences.isotropic import IsotropicNoise
from leaktight.defences.laplace import LaplaceNoise
from leaktight.defences.layer_guard import LayerGuard
from leaktight.defences.local_dp import LocalDP
from leaktight.defences.max_norm import MaxNorm
from leaktight.defences.polarization import Polarization
from leaktight.defences.pruning import Pruning
from leaktight.defences.sealed import Sealed
from leaktight.defences.sumkl import SumKL
from leaktight.defences.top_k import TopK
from leaktight.defences.transformation import Transformation
from leaktight.defences.withhold import Withhold

__all__ = [
    "DPSGD",
    "ClassKeys",
    "GaussianNoise",
    "IsotropicNoise",
    "LaplaceNoise",
    "LayerGuard",
    "LocalDP",
    "MaxNorm",
    "Polarization",
    "Pruning",
    "Sealed",
    "SumKL",
    "TopK",
    "Transformation",
    "Withhold",
]
