from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leaktight.papers import Order, Records, Tables, find_paper
from leaktight.papers.class_keys import CHOSEN, EACH, PAPER, SCORED
from leaktight.papers.class_keys.gan_attack import BEYOND
from leaktight.papers.class_keys.regression import ACCURACY
from leaktight.papers.class_keys.scales import scope_of
from leaktight.papers.paper import Plans
from leaktight.papers.row import CLAIM


def test_each_claim_is_checked_once(tables: Tables) -> None:
    names = [check.name for check in PAPER.checks(tables)]
    assert len(set(names)) == len(names) == 24
    # Behind a fixed layer longer keys do not tell a generator less, whatever the cells answer.
    failing = [check.name for check in PAPER.checks(tables) if not check.holds]
    assert len(failing) == 3
    assert all(name.startswith("Overlap of what two random keys tell a generator") for name in failing)


def test_each_claim_of_the_page_is_judged_by_a_check(tables: Tables) -> None:
    checks = PAPER.checks(tables)
    assert [claim.claim for claim in PAPER.summary.claims if not claim.among(checks)] == []


def test_gaps_never_hold(answered: Callable[..., Records], setup: Any) -> None:
    checks = PAPER.checks(PAPER.tables(setup, answered(lambda cell: True)))
    # What follows from keys alone needs no record.
    assert sum(check.holds for check in checks) == 4
    assert len(checks) == 24


def test_a_reader_is_told_how_samples_are_scored_and_settings_were_chosen() -> None:
    notes = PAPER.remarks(Order(), scope_of(Order()))
    assert notes[:2] == [SCORED, CHOSEN]
    assert BEYOND in notes
    assert EACH not in notes


def test_where_each_seed_has_a_class_of_its_own_it_is_said(sets: str) -> None:
    order = Order(scale="small", data=sets)
    notes = PAPER.remarks(Order(), scope_of(order))
    assert EACH in notes
    assert not any("Olivetti Faces" in note for note in notes)


def test_of_faces_that_are_there_it_is_said_how_few_their_recognisers_know(faces: str) -> None:
    order = Order(scale="small", data=faces)
    assert any("recognisers know three pictures a person" in note for note in PAPER.remarks(Order(), scope_of(order)))


def test_the_full_experiment_was_chosen_by_nothing_of_ours(sets: str) -> None:
    order = Order(scale="paper", data=sets)
    assert CHOSEN not in PAPER.remarks(Order(), scope_of(order))


def test_table_1_is_published_and_all_else_is_told() -> None:
    tables = PAPER.published_tables()
    assert [row["accuracy"] for row in tables["regression"]] == list(ACCURACY.values()) == [0.948, 0.94, 0.736, 0.742]
    for name, rows in tables.items():
        assert rows
        assert name == "regression" or all(row[CLAIM] and row["source"] for row in rows)


def test_the_paper_is_in_the_catalogue() -> None:
    paper = find_paper("class-keys")
    assert "Sariyildiz" in paper.title


def test_each_part_has_a_plan_and_each_attack_one_for_each_seed(plans: Plans) -> None:
    assert list(plans) == [
        *("digits-learning", "digits-participants"),
        *(f"digits-{part}-{repeat}" for part in ("guessed", "known", "estimated") for repeat in range(3)),
        *(f"digits-crowd-{victim}" for victim in range(3)),
        *("digits-shared", "digits-central"),
    ]
    assert plans["digits-guessed-2"].grid.seeds == (7,)
    assert plans["digits-learning"].grid.seeds == (5, 6, 7)


def test_tables_are_those_that_were_published_and_their_keys_are_unique(tables: Tables) -> None:
    assert tables.keys() == PAPER.published_tables().keys() == PAPER.keys.keys()
    for name, columns in PAPER.keys.items():
        places = [tuple(row[column] for column in columns) for row in tables[name]]
        assert len(set(places)) == len(places) > 0


def test_nothing_is_missing(tables: Tables) -> None:
    for rows in tables.values():
        for row in rows:
            ends = ("_low", "_high") if row.get("objective") else ()  # of one seed there is no interval
            assert not [name for name, value in row.items() if value is None and not name.endswith(ends)]
