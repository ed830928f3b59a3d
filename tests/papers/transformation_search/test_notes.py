from __future__ import annotations

from leaktight.papers import Order
from leaktight.papers.transformation_search.notes import (
    ADAPTIVE,
    COUNTERFACTUAL,
    INITIAL,
    INTERVALS,
    NETWORKS,
    NOISE,
    PICTURES,
    TRANSFORMED,
    notes_of,
)
from leaktight.papers.transformation_search.settings import Study, study_of
from leaktight.transforms.policy import Policy


def test_what_is_always_so_is_always_told(study: Study, sets: str) -> None:
    for one in (study, study_of(Order()), study_of(Order(scale="paper", data=sets))):
        assert {INTERVALS, TRANSFORMED, ADAPTIVE, COUNTERFACTUAL, NOISE, PICTURES} <= set(notes_of(one, {}))


def test_what_was_searched_comes_first(study: Study) -> None:
    assert notes_of(study, {"cifar10-lenet": Policy.of("3-1+18-15")})[0] == "Searched for cifar10-lenet: 3-1+18-15."


def test_what_is_smaller_than_the_paper_s_is_told(study: Study) -> None:
    told = " ".join(notes_of(study, {}))
    assert f"Attacks take {study.attack.iterations} iterations in Tables 1, 3 and 4" in told
    assert "the paper's take 4800, and 2500 in Fig. 2" in told
    assert f"The network is LeNet, after {study.epochs} epochs" in told
    assert INITIAL in told
    assert NETWORKS in told


def test_at_full_scale_there_is_nothing_smaller(sets: str) -> None:
    told = " ".join(notes_of(study_of(Order(scale="paper", data=sets)), {}))
    assert "iterations in Tables" not in told
    assert "The network is" not in told
    assert INITIAL not in told
    assert NETWORKS not in told
