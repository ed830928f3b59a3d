from __future__ import annotations

from leaktight.papers import Order, find_paper
from leaktight.papers.class_keys.notes import BEYOND, CHOSEN, EACH, SCORED, notes_of
from leaktight.papers.class_keys.published import ACCURACY, published
from leaktight.papers.class_keys.settings import scope_of
from leaktight.papers.reproduction import CLAIM


def test_a_reader_is_told_how_samples_are_scored_and_settings_were_chosen() -> None:
    notes = notes_of(scope_of(Order()), Order())
    assert notes[:2] == [SCORED, CHOSEN]
    assert BEYOND in notes
    assert EACH not in notes


def test_where_each_seed_has_a_class_of_its_own_it_is_said(sets: str) -> None:
    order = Order(scale="small", data=sets)
    notes = notes_of(scope_of(order), order)
    assert EACH in notes
    assert not any("Olivetti Faces" in note for note in notes)


def test_faces_that_are_there_are_said_to_be_smaller(faces: str) -> None:
    order = Order(scale="small", data=faces)
    assert any("Olivetti Faces are brought to 32x32" in note for note in notes_of(scope_of(order), order))


def test_the_full_experiment_was_chosen_by_nothing_of_ours(sets: str) -> None:
    order = Order(scale="paper", data=sets)
    assert CHOSEN not in notes_of(scope_of(order), order)


def test_table_1_is_published_and_all_else_is_told() -> None:
    tables = published()
    assert [row["accuracy"] for row in tables["regression"]] == list(ACCURACY.values()) == [0.948, 0.94, 0.736, 0.742]
    for name, rows in tables.items():
        assert rows
        assert name == "regression" or all(row[CLAIM] and row["source"] for row in rows)


def test_the_paper_is_in_the_catalogue() -> None:
    paper = find_paper("class-keys")
    assert "Sariyildiz" in paper.title
