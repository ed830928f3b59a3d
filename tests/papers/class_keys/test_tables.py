from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.core.record import Status
from leaktight.papers import Tables, find_paper
from leaktight.papers.class_keys.measured import Measured, chance, ratios, values
from leaktight.papers.class_keys.settings import Scope
from leaktight.papers.class_keys.tables import tables_of
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import number, rows_where

PAPER = find_paper("class-keys")


@pytest.fixture(scope="module")
def tables(scope: Scope, answered: Callable[..., Records]) -> Tables:
    return tables_of(scope, answered(), seed=5)


def test_tables_are_those_that_were_published_and_their_keys_are_unique(tables: Tables) -> None:
    assert tables.keys() == PAPER.published().keys() == PAPER.keys.keys()
    for name, columns in PAPER.keys.items():
        places = [tuple(row[column] for column in columns) for row in tables[name]]
        assert len(set(places)) == len(places) > 0


def test_nothing_is_missing(tables: Tables) -> None:
    for rows in tables.values():
        for row in rows:
            ends = ("_low", "_high") if row.get("objective") else ()  # of one seed there is no interval
            assert not [name for name, value in row.items() if value is None and not name.endswith(ends)]


def test_numbers_are_means_over_seeds_with_their_intervals(tables: Tables) -> None:
    [row] = rows_where(tables["experiments"], experiment="plain")
    # The seeds are 5, 6 and 7.
    assert row["recognised"] == pytest.approx(0.906)
    low, high = number(row, "recognised_low"), number(row, "recognised_high")
    assert low is not None
    assert high is not None
    assert low < 0.906 < high
    assert row["chance"] == pytest.approx(0.1)


def test_experiments_are_told_apart(tables: Tables) -> None:
    found = {(row["experiment"], row["dimensions"]): number(row, "recognised") for row in tables["experiments"]}
    assert found == pytest.approx(
        {
            ("plain", 0): 0.906,
            ("I: exact key", 4096): 0.956,
            ("III: random key", 128): 8 / 128 + 0.006,
            ("III: random key", 4096): 8 / 4096 + 0.006,
            ("beyond: estimated key", 4096): 16 / 4096 + 0.006,
        }
    )


def test_the_curve_begins_with_the_key_itself(tables: Tables) -> None:
    found = [(row["distance"], number(row, "recognised")) for row in tables["distances"]]
    assert found == [(0.0, pytest.approx(0.956)), (0.5, pytest.approx(0.056)), (1.3, pytest.approx(0.006))]


def test_other_defences_stand_beside_keys(tables: Tables) -> None:
    found = {row["defence"]: number(row, "recognised") for row in tables["other_defences"]}
    assert list(found) == ["plain", "keys of 4,096", "noise 0.01", "top-k 0.1", "polarization"]
    assert found["top-k 0.1"] == pytest.approx(0.706)


def test_accuracies_over_training_are_compared_with_the_plain_framework_seed_by_seed(tables: Tables) -> None:
    rows = rows_where(tables["learning"], framework="keys of 4,096", participants=2)
    assert [row["rounds"] for row in rows] == [40, 120]
    assert rows[0]["accuracy"] == pytest.approx(0.9 + 0.004 - 0.01 + 0.006)
    assert rows[0]["of_plain"] == pytest.approx(0.9 / 0.91, abs=1e-3)
    assert [row["framework"] for row in rows_where(tables["learning"], participants=5)] == ["plain", "keys of 4,096"]


def test_both_objectives_are_there(tables: Tables) -> None:
    regression, entropy = tables["regression"]
    assert (regression["objective"], entropy["objective"]) == ("key-based regression", "cross entropy")
    assert entropy["of_entropy"] == pytest.approx(1)
    assert (number(regression, "of_entropy") or 0) < 1


def test_failures_are_gaps(scope: Scope, answered: Callable[..., Records]) -> None:
    found = tables_of(scope, answered(lambda cell: cell.label == "exact key"), seed=5)
    [row] = rows_where(found["experiments"], experiment="I: exact key")
    assert row["recognised"] is None
    assert found["distances"][0]["recognised"] is None
    assert found["distances"][1]["recognised"] is not None


def test_records_are_picked_by_plan_defence_probe_and_rounds(scope: Scope, answered: Callable[..., Records]) -> None:
    measured = Measured("digits", answered())
    records = measured.part("learning")
    assert {record.status for record in records} == {Status.DONE}
    defence = records[0].cell.defence
    assert set(values(records, "accuracy", defence, "utility", rounds=40)) == {5, 6, 7}
    assert values(records, "accuracy", defence, "utility", rounds=41) == {}
    assert values(records, "auc", defence, "utility") == {}
    assert len(measured.part("known", repeats=3)) == 3 * len(measured.part("known", repeats=1))
    assert measured.part("nothing") == []
    assert chance(records, "recognised") is None


def test_ratios_need_both() -> None:
    assert ratios({0: 0.5, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 0.0}) == [0.5]
