"""What an attacker does with messages: one file per idea, over one batched matching engine."""

from leaktight.attacks.analytic import Analytic
from leaktight.attacks.descent import AdamDescent, Descent, SgdDescent
from leaktight.attacks.lbfgs import LbfgsDescent
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.presets import PRESETS, preset

__all__ = [
    "PRESETS",
    "AdamDescent",
    "Analytic",
    "Descent",
    "GradientMatching",
    "LbfgsDescent",
    "SgdDescent",
    "preset",
]
