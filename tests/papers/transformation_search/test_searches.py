"""The searches of a study, at the smallest: policies are found before anything is planned, and not searched twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.papers import Order
from leaktight.papers.transformation_search import PAPER
from leaktight.papers.transformation_search.scales import Study, score_network, study_of
from leaktight.papers.transformation_search.searches import make_search, prepare
from leaktight.running.scheduler import Step
from leaktight.transforms import read_policy

CUT = Order(steps=1)


def test_every_subject_is_searched_in_a_folder_of_its_own_and_once(tmp_path: Path) -> None:
    told: list[Step] = []
    study = study_of(CUT)
    prepared = prepare(study, tmp_path, progress=told.append)
    assert Path(prepared.semi_trained).is_file()
    found = prepared.hybrids
    assert list(found) == ["photos-lenet"]
    file = tmp_path / "photos-lenet-search" / "policy.toml"
    assert read_policy(file) == found["photos-lenet"]
    assert len(found["photos-lenet"].branches) == 2
    assert all(step.text.startswith("photos-lenet-search (1 of 1): ") for step in told)
    before, again = file.read_bytes(), list[Step]()
    assert prepare(study, tmp_path, progress=again.append).hybrids == found
    # Every score was kept: there is nothing to tell of.
    assert (again, file.read_bytes()) == ([], before)


def test_plans_follow_on_what_was_prepared(tmp_path: Path) -> None:
    study = PAPER.prepare(PAPER.setup(CUT), tmp_path)
    hybrid = study.hybrids["photos-lenet"]
    for part in ("photos-lenet-policies", "digits-lenet-transfer"):
        assert any(getattr(defence, "policy", None) == hybrid for defence in PAPER.plans(study)[part].defences)
    assert f"Searched for photos-lenet: {hybrid}." in PAPER.remarks(CUT, study)


@pytest.mark.parametrize(("scale", "method"), [("small", "racing"), ("paper", "random")])
def test_the_network_that_is_trained_is_searched_for_two_policies_of_three_functions(
    scale: str, method: str, sets: str
) -> None:
    study: Study = study_of(Order.model_validate({"scale": scale, "data": sets}))
    wanted = make_search(study.model_copy(update={"seed": 3}), study.focus)
    assert (wanted.data, wanted.model, wanted.seed) == (study.focus.data, score_network(study.focus.model), 3)
    assert (wanted.batches, wanted.trained) == (10, 0)
    assert (wanted.functions, wanted.policies, wanted.candidates, wanted.images) == (3, 2, 1500, 100)
    assert (wanted.epochs, wanted.share, wanted.method) == (50, 0.1, method)
