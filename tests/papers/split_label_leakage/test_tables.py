from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.papers import Order, Tables
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import number, over_seeds, rows_where
from leaktight.papers.split_label_leakage import SplitLabelLeakage
from leaktight.papers.split_label_leakage.equal_leak import Setting, at_equal_leak
from leaktight.papers.split_label_leakage.measured import Measured
from leaktight.papers.split_label_leakage.settings import Study
from leaktight.papers.split_label_leakage.tables import tables_of

PAPER = SplitLabelLeakage()


@pytest.fixture
def tables(study: Study, answered: Callable[..., Records]) -> Tables:
    return tables_of([Measured.of(study, answered())])


def only(tables: Tables, table: str, column: str, **wanted: Any) -> float | None:
    [row] = rows_where(tables[table], **wanted)
    return number(row, column)


def test_every_table_has_its_keys_once(tables: Tables) -> None:
    assert tables.keys() == PAPER.keys.keys() == PAPER.published().keys()
    for name, rows in tables.items():
        found = [tuple(row[key] for key in PAPER.keys[name]) for row in rows]
        assert rows
        assert len(set(found)) == len(found)


def test_moments_and_distributions_are_those_after_the_first_look(tables: Tables) -> None:
    assert [row["step"] for row in rows_where(tables["moments"], defence="none")] == [10, 20, 30, 40]
    assert only(tables, "moments", "leak_auc", defence="none", moment=2) == pytest.approx(1.002)
    # The third of all names is the median of the negatives' norm.
    assert only(tables, "distributions", "norm_q50", defence="none", moment=4, label="negative") == pytest.approx(2.4)
    assert only(tables, "distributions", "cosine_q95", defence="sumKL L=0.4", moment=1, label="positive") == pytest.approx(19.1)


def test_leakage_over_training_is_told_by_layer_and_fifth(tables: Tables) -> None:
    cut, first = (rows_where(tables["training"], layer=layer, defence="sumKL L=0.4")[0] for layer in ("cut", "first"))
    assert number(cut, "leak_auc") == pytest.approx(0.6)
    assert number(first, "leak_auc") == pytest.approx(0.57)
    assert number(first, "leak_auc_q95") == pytest.approx(0.59)
    assert (number(cut, "chance"), number(first, "chance")) == pytest.approx((0.55, 0.58))
    # Twenty steps: the first fifth has those numbered 0 to 3.
    assert number(cut, "fifth_1") == pytest.approx(0.6015)
    assert number(cut, "fifth_5") == pytest.approx(0.6175)


def test_utility_is_a_mean_over_seeds_with_an_interval(tables: Tables) -> None:
    [row] = rows_where(tables["trade_off"], defence="sumKL L=0.4")
    assert number(row, "test_auc") == pytest.approx(0.75 - 0.04 + 0.006)
    low, high = number(row, "test_auc_low"), number(row, "test_auc_high")
    assert low is not None
    assert high is not None
    # Student's t with two degrees of freedom is 4.303; the deviation is 0.001.
    assert high - low == pytest.approx(2 * 4.3027 * 0.001 / 3**0.5, rel=1e-3)
    assert number(row, "lost_auc") == pytest.approx(0.04)
    assert number(row, "lost_auc_low") == pytest.approx(0.04)


def test_the_strongest_attack_is_the_one_that_finds_most(tables: Tables) -> None:
    [row] = rows_where(tables["trade_off"], defence="isotropic 5")
    assert number(row, "norm_q95") == pytest.approx(0.92)
    assert number(row, "strongest_q95") == number(row, "clustering_q95") == pytest.approx(0.97)


def test_layers_are_numbered_from_the_inputs_to_the_cut(tables: Tables) -> None:
    values = [number(row, "leak_auc") for row in rows_where(tables["layers"], defence="none")]
    assert values == pytest.approx([0.97, 0.98, 0.99, 1.0])
    levels = [number(row, "chance") for row in rows_where(tables["layers"], defence="none")]
    assert levels == pytest.approx([0.58, 0.57, 0.56, 0.55])


def test_isotropic_noise_is_compared_where_it_leaks_as_much(tables: Tables) -> None:
    # Both leak by strength alone, so that the same leakage is at ratio 0.8 * 25, and costs the same.
    for attack in ("gradient norm", "direction", "clustering", "strongest of these"):
        assert only(tables, "equal_leak", "isotropic_ratio", attack=attack) == pytest.approx(20)
        assert only(tables, "equal_leak", "gain", attack=attack) == pytest.approx(0, abs=1e-12)


def test_the_chosen_number_of_steps_is_marked(tables: Tables) -> None:
    assert [(row["steps"], row["chosen"]) for row in tables["steps"]] == [(20, False), (60, True)]
    assert only(tables, "steps", "held_out_auc", steps=60) == pytest.approx(0.706)


def test_what_failed_leaves_gaps(study: Study, answered: Callable[..., Records]) -> None:
    records = answered(lambda cell: cell.defence.kind == "isotropic_noise" and cell.seed == 6)
    tables = tables_of([Measured.of(study, records)])
    # Two seeds are left; the third has no curve to compare with.
    assert only(tables, "equal_leak", "gain", attack="gradient norm") is not None
    [row] = rows_where(tables["trade_off"], defence="isotropic 5")
    assert number(row, "test_auc") == pytest.approx(0.75 - 0.01 + 0.006)
    nothing = tables_of([Measured.of(study, answered(lambda cell: True))])
    assert {name: len(rows) for name, rows in nothing.items()} == {name: len(rows) for name, rows in tables.items()}
    assert all(row["gain"] is None for row in nothing["equal_leak"])


def test_the_paper_makes_the_same_tables(answered: Callable[..., Records]) -> None:
    found = PAPER.tables(Order(seed=5), answered())
    assert list(found) == list(PAPER.keys)


leak = st.floats(0, 1)


@given(leaks=st.lists(leak, min_size=1, max_size=6), wanted=leak)
def test_equal_leakage_never_leaves_the_curve(leaks: list[float], wanted: float) -> None:
    curve = [Setting(float(at), value, 1 - at / 10) for at, value in enumerate(leaks)]
    found = at_equal_leak(curve, wanted)
    assert 0 <= found.ratio <= len(curve) - 1
    assert curve[-1].utility - 1e-9 <= found.utility <= 1
    if min(leaks) <= wanted:
        assert found.leak <= wanted
    else:
        assert found.leak == min(leaks)


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_the_mean_lies_within_its_interval(values: list[float]) -> None:
    row = over_seeds("auc", values)
    mean, low, high = (number(row, name) for name in ("auc", "auc_low", "auc_high"))
    assert mean is not None
    assert (low is None) == (len(values) < 2)
    if low is not None and high is not None:
        assert low <= mean <= high
