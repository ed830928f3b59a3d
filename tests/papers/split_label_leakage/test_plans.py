from __future__ import annotations

from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.data import HeldOut, RareDigit
from leaktight.defences.isotropic import IsotropicNoise
from leaktight.defences.max_norm import MaxNorm
from leaktight.defences.sumkl import SumKL
from leaktight.learning import Adam, Split
from leaktight.papers import Order
from leaktight.papers.paper import Plans
from leaktight.papers.split_label_leakage import SplitLabelLeakage
from leaktight.papers.split_label_leakage.mechanisms import attacks, defences
from leaktight.papers.split_label_leakage.plans import DISTRIBUTIONS, LEAK, folder, plans_of, split
from leaktight.papers.split_label_leakage.settings import Study, studies
from leaktight.probes import ClassGradients, Utility


def test_each_part_has_a_plan(plans: Plans) -> None:
    assert list(plans) == ["digits-distributions", "digits-leak", "digits-steps"]
    assert [plan.grid.seeds for plan in plans.values()] == [(5,), (5, 6, 7), (5, 6, 7)]


def test_distributions_are_looked_at_with_the_cut_in_the_middle(plans: Plans) -> None:
    plan = plans["digits-distributions"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Split)
    assert (scenario.cut, scenario.rounds, scenario.spread()) == ("relu2", 50, (0, 10, 20, 30, 40))
    assert (plan.grid.victims, plan.grid.stages) == (5, ("training",))
    assert plan.defences == (SumKL(bound=0.4),)
    assert plan.probes["class gradients"] == ClassGradients()


def test_every_training_is_attacked_over_its_whole_length(plans: Plans, study: Study) -> None:
    plan = plans["digits-leak"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Split)
    assert (scenario.cut, scenario.rounds, scenario.data) == ("", study.rounds, RareDigit())
    assert scenario.optimiser == Adam(learning_rate=0.003)
    assert (plan.grid.stages, plan.grid.batch_sizes, plan.grid.victims) == (("training",), (256,), 20)
    assert plan.defences == tuple(defences(study.bounds, study.ratios).values())[1:]
    assert list(plan.probes) == ["gradient norm", "direction", "clustering"]


def test_attackers_sit_with_the_features_and_know_what_they_need() -> None:
    for name, probe in attacks().items():
        assert isinstance(probe, Attempt)
        assert probe.threat.seat == "feature-party"
        assert probe.threat.knows == (frozenset({Knows.HINTS}) if name == "direction" else frozenset())
        probe.attack.check(probe.threat.knows)


def test_what_is_compared() -> None:
    assert list(defences((0.1,), (5.0,)).values())[1:] == [SumKL(bound=0.1), IsotropicNoise(ratio=5.0), MaxNorm()]


def test_the_number_of_steps_is_chosen_on_held_out_training_rows(plans: Plans, study: Study) -> None:
    plan = plans["digits-steps"]
    assert plan.probes == {"utility": Utility()}
    assert plan.defences == ()
    for scenario, count in zip(plan.scenarios.values(), study.candidates, strict=True):
        assert isinstance(scenario, Split)
        assert (scenario.data, scenario.rounds) == (HeldOut(data=study.data), count)


def test_a_batch_is_never_larger_than_the_data_and_epochs_become_steps(sets: str) -> None:
    [study] = studies(Order(scale="paper", data=sets))
    scenario = split(study, study.data, rounds=study.rounds, moments=20)
    assert (scenario.batch_size, scenario.rounds) == (120, 30)
    small = study.model_copy(update={"batch_size": 50})
    assert split(small, small.data, rounds=0, moments=20).rounds == 60
    plans = plans_of(study, 0)
    # Thirty steps and twenty moments: one step can be looked at from each moment.
    assert list(plans) == [folder(study, part) for part in (DISTRIBUTIONS, LEAK)]
    assert plans[folder(study, LEAK)].grid.victims == 20


def test_folders_of_two_data_sets_are_different(sets: str) -> None:
    names = list(SplitLabelLeakage().plans(Order(scale="small", data=sets, steps=1)))
    assert len(set(names)) == len(names) == 12
    assert all(name == name.lower() and " " not in name and "," not in name for name in names)
