"""What is compared: the paper's protection, its baselines, and the attacks that measure them."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.attacks.clustering import Clustering
from leaktight.attacks.direction import Direction
from leaktight.attacks.gradient_norm import GradientNorm
from leaktight.attacks.label_attack import ALL
from leaktight.attacks.label_posterior import LabelPosterior
from leaktight.core.attack import Attack
from leaktight.core.defence import Defence, Undefended
from leaktight.core.probe import Attempt
from leaktight.core.threat import ThreatModel
from leaktight.defences.isotropic import IsotropicNoise
from leaktight.defences.max_norm import MaxNorm
from leaktight.defences.sumkl import SumKL
from leaktight.learning.boundary import FEATURE_PARTY
from leaktight.metrics.leak_auc import LeakAUC
from leaktight.metrics.leak_auc_passes import LeakAUCPasses
from leaktight.metrics.norm_histogram import NormHistogram

NONE, MAX_NORM = "none", "max-norm"
NORM, DIRECTION, CLUSTERING, POSTERIOR = "gradient norm", "direction", "clustering", "label posterior"
STRONGEST_BOUND = 0.4
"""The bound of Fig. 2(c), and of the claims about it."""
PUBLISHED_RATIO = 5.0
"""That of Fig. 2(c): 25 in variance."""


def sumkl(bound: float, passes: int = 1) -> str:
    """Return the name of the protection at a bound L on the detection error, of one message or over passes.

    Example:
        >>> sumkl(0.4), sumkl(0.4, passes=20)
        ('sumKL L=0.4', 'sumKL L=0.4 over 20 passes')
    """
    return f"sumKL L={bound:g}{f' over {passes} passes' if passes > 1 else ''}"


def isotropic(ratio: float) -> str:
    """Return the name of isotropic noise whose length is so many times the longest gradient."""
    return f"isotropic {ratio:g}"


PROTECTED, BASELINE = sumkl(STRONGEST_BOUND), isotropic(PUBLISHED_RATIO)


def defences(bounds: Sequence[float], ratios: Sequence[float]) -> dict[str, Defence]:
    """Return everything that is compared, by its name in our tables, the unprotected training first.

    Example:
        >>> list(defences(bounds=(0.4,), ratios=(5.0,)))
        ['none', 'sumKL L=0.4', 'isotropic 5', 'max-norm']
    """
    return {
        NONE: Undefended(),
        **{sumkl(bound): SumKL(bound=bound) for bound in bounds},
        **{isotropic(ratio): IsotropicNoise(ratio=ratio) for ratio in ratios},
        MAX_NORM: MaxNorm(),
    }


def attacks() -> dict[str, Attempt]:
    """Return the attacks by name, each from the feature party's seat with no more than it needs.

    The norm is taken at every layer; the last of them knows the defence and weighs rows by the noise that it states.
    Histograms of norms are there for the reports of the audits.
    """
    by_name: dict[str, Attack] = {
        NORM: GradientNorm(layer=ALL),
        DIRECTION: Direction(),
        CLUSTERING: Clustering(),
        POSTERIOR: LabelPosterior(),
    }
    return {
        name: Attempt(
            attack=attack,
            threat=ThreatModel(seat=FEATURE_PARTY, knows=frozenset(attack.needs)),
            metrics=(LeakAUC(), LeakAUCPasses(), NormHistogram()),
        )
        for name, attack in by_name.items()
    }
