from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from scipy import stats

from leaktight.core.defence import Undefended
from leaktight.core.record import Cell
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import over_seeds
from leaktight.papers.split_label_leakage.measured import Measured, differences
from leaktight.papers.split_label_leakage.settings import Study


@pytest.fixture
def measured(study: Study, answered: Callable[..., Records]) -> Measured:
    return Measured.of(study, answered())


def test_records_are_picked_by_the_plan_they_come_from(measured: Measured) -> None:
    assert len(measured.distributions) == 2 * 2
    # One undefended, two bounds, three ratios and max-norm; three attacks; three seeds.
    assert len(measured.leak) == 7 * 3 * 3
    assert len(measured.steps) == 2 * 3


def test_null_views_are_not_counted(study: Study, answered: Callable[..., Records]) -> None:
    records = {
        name: [record.model_copy(update={"cell": record.cell.model_copy(update={"purpose": "null"})}) for record in found]
        for name, found in answered().items()
    }
    empty = Measured.of(study, records)
    assert (empty.distributions, empty.leak, empty.steps) == ([], [], [])
    assert empty.utility("none") == {}


def test_a_study_without_candidates_has_no_steps(study: Study, answered: Callable[..., Records]) -> None:
    records = {name: found for name, found in answered().items() if not name.endswith("steps")}
    assert Measured.of(study, records).steps == []


def test_readings_are_found_by_defence_attack_layer_and_seed(measured: Measured) -> None:
    cut = measured.values("none", "direction", "leak_auc")
    assert cut == {seed: pytest.approx(1.01) for seed in (5, 6, 7)}
    first = measured.values("max-norm", "gradient norm", "leak_auc_q95", "relu1")
    assert first == {seed: pytest.approx(0.75 - 0.03 + 0.02) for seed in (5, 6, 7)}
    assert measured.values("none", "gradient norm", "leak_auc", "no such layer") == {}


def test_utility_is_that_of_each_seed(measured: Measured) -> None:
    assert measured.utility("none") == {seed: pytest.approx(0.75 + seed / 1000) for seed in (5, 6, 7)}


def test_a_seed_that_failed_is_left_out(study: Study, answered: Callable[..., Records]) -> None:
    def fails(cell: Cell) -> bool:
        return cell.seed == 6 and isinstance(cell.defence, Undefended)

    measured = Measured.of(study, answered(fails))
    assert list(measured.utility("none")) == [5, 7]
    assert list(measured.utility("max-norm")) == [5, 6, 7]
    assert len(differences(measured.utility("max-norm"), measured.utility("none"))) == 2


def test_the_interval_is_students(measured: Measured) -> None:
    values = [0.70, 0.74, 0.71, 0.69]
    low, high = stats.t.interval(0.95, df=3, loc=sum(values) / 4, scale=stats.sem(values))
    row = over_seeds("auc", values)
    assert [row["auc_low"], row["auc_high"]] == pytest.approx([low, high])


def test_one_seed_has_no_interval_and_what_is_not_finite_is_no_number() -> None:
    assert over_seeds("auc", [0.7]) == {"auc": 0.7, "auc_low": None, "auc_high": None}
    assert over_seeds("auc", [math.inf]) == {"auc": None, "auc_low": None, "auc_high": None}
