from __future__ import annotations

from leaktight.papers import Order
from leaktight.papers.layer_leakage import LayerLeakage
from leaktight.papers.layer_leakage.notes import ENTRIES, FLAGS, INTERVALS, SINGLE, notes_of
from leaktight.papers.layer_leakage.settings import Study, study_of

PAPER = LayerLeakage()


def test_what_is_always_so_is_always_told(study: Study, sets: str) -> None:
    for one in (study, study_of(Order()), study_of(Order(scale="paper", data=sets))):
        assert {INTERVALS, ENTRIES, SINGLE} <= set(notes_of(one))


def test_faces_have_flags_and_a_size(study: Study, sets: str) -> None:
    told = notes_of(study)
    assert FLAGS in told
    assert any("brought to 32 pixels a side; the paper's are 62x47" in note for note in told)
    whole = notes_of(study_of(Order(scale="paper", data=sets)))
    assert FLAGS in whole
    assert not any("62x47" in note for note in whole)
    assert FLAGS not in notes_of(study_of(Order()))


def test_what_differs_from_the_paper_s_attack_is_told(study: Study) -> None:
    told = " ".join(notes_of(study))
    assert "Of a batch with the property a share of 0.5 has it." in told
    assert "The attacker sits at the server" in told
    assert "compared on AlexNet alone" in told


def test_the_full_experiment_has_the_paper_s_attack(sets: str) -> None:
    told = " ".join(PAPER.notes(Order(scale="paper", data=sets)))
    assert "a share of" not in told
    assert "The attacker sits" not in told
    assert "alone." not in told
