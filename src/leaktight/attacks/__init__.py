"""Attacks: what an attacker does with messages. One file per idea; all searches share one batched engine."""

from leaktight.attacks.analytic import Analytic
from leaktight.attacks.clustering import Clustering
from leaktight.attacks.completion import Completion
from leaktight.attacks.consensus import Consensus
from leaktight.attacks.direction import Direction, FewHints, InnerProduct
from leaktight.attacks.embedding_scores import EmbeddingAttack
from leaktight.attacks.gan import GanAttack
from leaktight.attacks.gradient_norm import GradientNorm
from leaktight.attacks.guarded_lbfgs import SearchGuardedLBFGS
from leaktight.attacks.label_attack import LabelAttack
from leaktight.attacks.label_posterior import LabelPosterior
from leaktight.attacks.label_reading import LabelReading
from leaktight.attacks.lbfgs import SearchLBFGS
from leaktight.attacks.learned_inverter import LearnedInverter
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.optimiser import SearchAdam, SearchOptimiser, SearchSGD
from leaktight.attacks.presets import PRESETS, preset
from leaktight.attacks.property_inference import PropertyInference
from leaktight.attacks.running_statistics import RunningStatistics
from leaktight.attacks.spectral import Spectral
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.surrogate import Surrogate

__all__ = [
    "PRESETS",
    "Analytic",
    "Clustering",
    "Completion",
    "Consensus",
    "Direction",
    "EmbeddingAttack",
    "FewHints",
    "GanAttack",
    "GradientMatching",
    "GradientNorm",
    "InnerProduct",
    "LabelAttack",
    "LabelPosterior",
    "LabelReading",
    "LearnedInverter",
    "PropertyInference",
    "RunningStatistics",
    "SearchAdam",
    "SearchGuardedLBFGS",
    "SearchLBFGS",
    "SearchOptimiser",
    "SearchSGD",
    "Spectral",
    "Strongest",
    "Surrogate",
    "preset",
]
