from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.record import Status
from leaktight.learning import Federated
from leaktight.papers import PAPERS, Order, Paper, find_paper, reproduce
from leaktight.running import Step, Store


def test_the_plans_become_tables_beside_the_published_ones(toy: Paper, tmp_path: Path) -> None:
    done = reproduce(toy, Order(seed=3), tmp_path).reproduction
    assert (done.paper, done.scale, done.seed) == ("toy", "smoke", 3)
    assert [row["std"] for row in done.tables["accuracy"]] == [0.01, 1.0]
    assert done.published == toy.published()
    assert done.tables.keys() == done.published.keys() == toy.keys.keys()
    assert [check.name for check in done.checks] == ["Accuracy(weak) - Accuracy(strong)"]
    assert done.seconds > 0


def test_each_plan_is_an_audit_of_its_own_that_only_its_owner_can_read(toy: Paper, tmp_path: Path) -> None:
    reproduce(toy, Order(), tmp_path)
    for name in ("weak", "strong"):
        with Store.read(tmp_path / name) as store:
            assert store.missing() == 0
        assert stat.S_IMODE((tmp_path / name / "audit.sqlite").stat().st_mode) == 0o600


def test_a_second_run_computes_nothing_again(toy: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = reproduce(toy, Order(), tmp_path).reproduction

    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(Federated, "train", never)
    again = reproduce(toy, Order(), tmp_path).reproduction
    assert again.model_copy(update={"seconds": 0.0}) == first.model_copy(update={"seconds": 0.0})


def test_progress_says_which_plan(toy: Paper, tmp_path: Path) -> None:
    told: list[Step] = []
    reproduce(toy, Order(), tmp_path, progress=told.append)
    ended = [step.text.split(":")[0] for step in told if step.status is not None]
    assert list(dict.fromkeys(ended)) == ["weak (1 of 2)", "strong (2 of 2)"]


def test_what_fails_leaves_a_gap_and_is_told(toy: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = Federated.train

    def sometimes(self: Federated, defence: Any, seed: int, progress: Any = None, enter: Any = None) -> Any:
        if getattr(defence, "std", 0) == 1.0:
            raise ValueError("No luck")
        return train(self, defence, seed, progress, enter)

    monkeypatch.setattr(Federated, "train", sometimes)
    done = reproduce(toy, Order(), tmp_path)
    assert [record.status for record in done.failed] == [Status.FAILED]
    assert "No luck" in done.failed[0].reason
    assert done.reproduction.tables["accuracy"][1]["accuracy"] is None
    assert not done.reproduction.checks[0].holds


def test_remarks_say_what_was_cut_what_was_not_read_and_where_gaps_are(
    toy: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reproduce(toy, Order(), tmp_path / "plain").reproduction.remarks == ()

    def refuse(*_: Any) -> None:
        raise Refusal("Not with me.")

    monkeypatch.setattr(Federated, "train", refuse)
    done = reproduce(toy, Order(steps=1, data="sets"), tmp_path / "cut").reproduction
    cut, unread, gap = done.remarks
    assert cut == "Cut."
    assert unread == "The scale `smoke` runs on bundled data: what `--data` names was not read."
    assert gap.startswith("4 cells refused, a gap in the tables: ")
    assert "Not with me." in gap


def test_a_paper_says_by_itself_what_was_cut_and_left_out(toy: Paper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(toy), "left_out", lambda self, order: ["MNIST", "SVHN"])
    monkeypatch.setattr(type(toy), "notes", lambda self, order: ["Mind the gap."])
    assert Paper.remarks(toy, Order()) == ["Left out, because the data folder has no such set: MNIST, SVHN.", "Mind the gap."]
    [cut, *_] = Paper.remarks(toy, Order(steps=2))
    assert cut.startswith("Cut by --steps 2: at most 2 of everything that is counted. The numbers show")


def test_papers_are_found_by_name() -> None:
    for name, paper in PAPERS.items():
        assert find_paper(name) is paper
        assert paper.name == name
        assert paper.title


def test_an_unknown_paper_is_one_sentence() -> None:
    with pytest.raises(
        InvalidValue, match=r"There is no paper named `polarisation-network`. Did you mean `polarization-network`\?"
    ):
        find_paper("polarisation-network")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"steps": 0}, "The `steps` of Order must be at least 1. Got 0 instead."),
        ({"seed": -1}, "The `seed` of Order must be at least 0. Got -1 instead."),
        ({"scale": "huge"}, "The `scale` of Order must be one of 'smoke', 'small' or 'paper'. Got 'huge' instead."),
    ],
)
def test_an_order_is_checked(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        Order(**settings)
