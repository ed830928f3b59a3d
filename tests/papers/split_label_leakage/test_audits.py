from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.record import Cell
from leaktight.data import RareDigit
from leaktight.defences.sumkl import SumKL
from leaktight.learning import Adam, Split
from leaktight.papers import Order, Records
from leaktight.papers.paper import Plans
from leaktight.papers.split_label_leakage import PAPER
from leaktight.papers.split_label_leakage.audits import (
    ATTACKS,
    STRONGEST,
    audit_name,
    differences,
    leak_values,
    leaks,
    make_scenario,
    utility,
)
from leaktight.papers.split_label_leakage.mechanisms import defences
from leaktight.papers.split_label_leakage.scales import Study, studies
from leaktight.probes import ClassGradients


def test_the_strongest_attack_is_chosen_seed_by_seed(study: Study, answered: Callable[..., Records]) -> None:
    records = answered(lambda cell: cell.label == "clustering" and cell.seed == 5)
    each = [leaks(study, records, "none", attack) for attack in ATTACKS]
    assert [list(one) for one in each] == [[5, 6, 7], [5, 6, 7], [6, 7], [5, 6, 7]]
    # The strongest of three attacks would be another number than that of four.
    assert leaks(study, records, "none", STRONGEST) == each[2]


def test_readings_are_found_by_defence_attack_layer_and_seed(study: Study, answered: Callable[..., Records]) -> None:
    records = answered()
    cut = leak_values(study, records, "none", "direction", "leak_auc")
    assert cut == {seed: pytest.approx(1.01) for seed in (5, 6, 7)}
    first = leak_values(study, records, "max-norm", "gradient norm", "leak_auc_q95", "relu1")
    assert first == {seed: pytest.approx(0.75 - 0.03 + 0.02) for seed in (5, 6, 7)}
    with pytest.raises(InvalidValue, match="has no reading `leak_auc` of layer `no such layer`"):
        leak_values(study, records, "none", "gradient norm", "leak_auc", "no such layer")


def test_utility_is_that_of_each_seed(study: Study, answered: Callable[..., Records]) -> None:
    assert utility(study, answered(), "none") == {seed: pytest.approx(0.75 + seed / 1000) for seed in (5, 6, 7)}


def test_a_seed_that_failed_is_left_out(study: Study, answered: Callable[..., Records]) -> None:
    def fails(cell: Cell) -> bool:
        return cell.seed == 6 and isinstance(cell.defence, Undefended)

    records = answered(fails)
    assert list(utility(study, records, "none")) == [5, 7]
    assert list(utility(study, records, "max-norm")) == [5, 6, 7]
    assert len(differences(utility(study, records, "max-norm"), utility(study, records, "none"))) == 2


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
    assert (plan.grid.stages, plan.grid.batch_sizes, plan.grid.victims) == (("training",), (256,), "all")
    assert plan.defences == tuple(defences(study.bounds, study.ratios).values())[1:]
    assert list(plan.probes) == ["gradient norm", "direction", "clustering", "label posterior"]


def test_a_batch_is_never_larger_than_the_data_and_epochs_become_steps(sets: str) -> None:
    [study] = studies(Order(scale="paper", data=sets))
    scenario = make_scenario(study, study.data, rounds=study.rounds, moments=20)
    assert (scenario.batch_size, scenario.rounds) == (120, 30)
    small = study.model_copy(update={"batch_size": 50})
    assert make_scenario(small, small.data, rounds=0, moments=20).rounds == 60
    plans = PAPER.plans([study])
    # Thirty steps and twenty moments: one step can be looked at from each moment.
    assert list(plans) == [audit_name(study, part) for part in ("distributions", "leak")]
    assert plans[audit_name(study, "leak")].grid.victims == 20
