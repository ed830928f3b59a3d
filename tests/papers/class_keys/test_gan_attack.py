from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks import GanAttack
from leaktight.defences import ClassKeys
from leaktight.papers import Check, Tables
from leaktight.papers.class_keys import PAPER
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where


@pytest.mark.parametrize(("words", "experiment"), [("plain framework", "plain"), ("exact key", "I: exact key")])
def test_the_attack_must_succeed_where_scores_are_known(
    tables: Tables, words: str, experiment: str, find_check: Callable[..., Check]
) -> None:
    start = f"Samples recognised as the victim's class, {words}"
    row = rows_where(tables["experiments"], experiment=experiment)[0]
    row |= {"recognised": 0.6, "recognised_low": 0.5, "recognised_high": 0.7}
    assert (find_check(start).holds, find_check(start).undecided) == (True, True)
    row["recognised"] = 0.59
    assert not find_check(start).holds


ANY = "any class of the victim beyond those of another random key"


@pytest.mark.parametrize(
    ("words", "who", "experiment", "column"),
    [
        ("the victim's class", "random", "III: random key", "recognised"),
        ("the victim's class", "estimated", "beyond: estimated key", "recognised"),
        (ANY, "estimated", "beyond: estimated key", "beyond_any"),
    ],
)
def test_keys_must_stop_it_from_4096_dimensions_on(
    tables: Tables, words: str, who: str, experiment: str, column: str, find_check: Callable[..., Check]
) -> None:
    start = f"Samples recognised as {words}, {who} key of 4,096"
    row = rows_where(tables["experiments"], experiment=experiment, dimensions=4096)[0]
    for value, holds in ((0.1, True), (0.11, False)):
        row[column] = value
        assert find_check(start).holds is holds
    assert not [check for check in PAPER.checks(tables) if "random key of 128" in check.name]


def test_a_random_key_is_not_compared_with_another_one(tables: Tables) -> None:
    names = [check.name for check in PAPER.checks(tables) if check.name.startswith(f"Samples recognised as {ANY}")]
    assert names
    assert all("estimated key of" in name for name in names)


def test_keys_are_estimated_for_the_same_victims(plans: Plans, attacks: Callable[..., dict[str, GanAttack]]) -> None:
    estimated = plans["digits-estimated-1"]
    [attack] = attacks(plans, "digits-estimated-1").values()
    [guess] = attacks(plans, "digits-guessed-1").values()
    assert attack == guess.model_copy(update={"class_key": "estimated", "controls": 1})
    assert guess.class_key == "random"
    assert estimated.grid == plans["digits-guessed-1"].grid
    assert estimated.defences == (ClassKeys(dimensions=4096),)
    assert not estimated.bare
    assert [one.class_key for one in attacks(plans, "digits-crowd-0").values()] == ["random"]


def test_numbers_are_means_over_seeds_with_their_intervals(tables: Tables) -> None:
    [row] = rows_where(tables["experiments"], experiment="plain")
    # The seeds are 5, 6 and 7.
    assert row["recognised"] == pytest.approx(0.906)
    low, high = number(row, "recognised_low"), number(row, "recognised_high")
    assert low is not None
    assert high is not None
    assert low < 0.906 < high
    assert row["recognised_chance"] == pytest.approx(0.1)
    # Of every number of any class the one of guessing is taken off, seed by seed.
    assert row["beyond_any"] == pytest.approx(0.406)


def test_experiments_are_told_apart(tables: Tables) -> None:
    found = {(row["experiment"], row["dimensions"]): number(row, "recognised") for row in tables["experiments"]}
    assert found == pytest.approx(
        {
            ("null: noise for updates", 0): 0.026,
            ("plain", 0): 0.906,
            ("I: exact key", 4096): 0.956,
            ("III: random key", 128): 8 / 128 + 0.006,
            ("III: random key", 4096): 8 / 4096 + 0.006,
            ("beyond: estimated key", 4096): 16 / 4096 + 0.006,
        }
    )
