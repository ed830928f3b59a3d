from __future__ import annotations

from leaktight.attacks.gradient_norm import GradientNorm
from leaktight.core.defence import Undefended
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.defences.isotropic import IsotropicNoise
from leaktight.defences.max_norm import MaxNorm
from leaktight.defences.sumkl import SumKL
from leaktight.metrics import LeakAUC, LeakAUCPasses
from leaktight.papers.split_label_leakage.mechanisms import BASELINE, PROTECTED, attacks, defences
from leaktight.papers.split_label_leakage.scales import BOUNDS, RATIOS


def test_names_are_different_and_the_unprotected_training_comes_first() -> None:
    found = defences(BOUNDS, RATIOS)
    assert len(found) == 2 + len(BOUNDS) + len(RATIOS)
    assert next(iter(found.values())) == Undefended()
    assert len({defence.key for defence in found.values()}) == len(found)


def test_figure_2c_compares_the_strongest_bound_with_a_variance_of_25() -> None:
    assert (PROTECTED, BASELINE) == ("sumKL L=0.4", "isotropic 5")
    assert {PROTECTED, BASELINE} <= defences(BOUNDS, RATIOS).keys()


def test_the_norm_is_taken_at_every_layer_and_graded_by_leak_auc() -> None:
    found = attacks()
    assert found["gradient norm"].attack == GradientNorm(layer="all")
    assert all({LeakAUC(), LeakAUCPasses()} <= set(probe.metrics) for probe in found.values())


def test_attackers_sit_with_the_features_and_know_what_they_need() -> None:
    for name, probe in attacks().items():
        assert isinstance(probe, Attempt)
        assert probe.threat.seat == "feature-party"
        known = {"direction": {Knows.HINTS}, "label posterior": {Knows.DEFENCE}}
        assert probe.threat.knows == frozenset(known.get(name, ()))
        probe.attack.check(probe.threat.knows)


def test_what_is_compared() -> None:
    assert list(defences((0.1,), (5.0,)).values())[1:] == [SumKL(bound=0.1), IsotropicNoise(ratio=5.0), MaxNorm()]
