from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.record import Status
from leaktight.learning import Federated
from leaktight.papers import Order, Paper, Reproduction, reproduce
from leaktight.papers.check import above
from leaktight.running import Step, Store


def made(**changes: object) -> Reproduction:
    whole = {"paper": "p", "scale": "smoke", "seed": 0, "seconds": 1.5, "tables": {}, "published": {}, "checks": ()}
    return Reproduction.model_validate({**whole, **changes})


def test_its_json_has_exactly_the_promised_keys() -> None:
    check = above("a claim", 1.0, least=0)
    done = made(tables={"t": [{"a": 1, "b": None, "c": "x", "d": 0.5}]}, checks=(check,))
    found = json.loads(done.model_dump_json())
    assert list(found) == [
        "paper",
        "scale",
        "seed",
        "steps",
        "seconds",
        "tables",
        "keys",
        "published",
        "checks",
        "remarks",
    ]
    assert found["tables"] == {"t": [{"a": 1, "b": None, "c": "x", "d": 0.5}]}
    assert found["checks"] == [
        {
            "name": "a claim",
            "value": 1.0,
            "expected": "above 0",
            "holds": True,
            "low": None,
            "high": None,
            "undecided": False,
            "why": "",
            "unless": "",
        }
    ]
    assert Reproduction.model_validate(found) == done


def test_rows_are_flat() -> None:
    with pytest.raises(InvalidValue):
        made(tables={"t": [{"a": [1, 2]}]})


def test_a_scale_is_one_of_three() -> None:
    with pytest.raises(InvalidValue, match="The `scale` of Reproduction must be one of"):
        made(scale="large")


def test_the_plans_become_tables_beside_the_published_ones(toy: Paper[Order], tmp_path: Path) -> None:
    done = reproduce(toy, Order(seed=3), tmp_path)
    assert (done.paper, done.scale, done.seed) == ("toy", "smoke", 3)
    assert [row["std"] for row in done.tables["accuracy"]] == [0.01, 1.0]
    assert done.published == toy.published_tables()
    assert done.keys == {"accuracy": ("std",), "figure": ("std",)}
    assert done.tables.keys() == done.published.keys() == toy.keys.keys()
    assert [check.name for check in done.checks] == ["Accuracy(weak) - Accuracy(strong)"]
    assert done.seconds > 0


def test_each_plan_is_an_audit_of_its_own_that_only_its_owner_can_read(toy: Paper[Order], tmp_path: Path) -> None:
    reproduce(toy, Order(), tmp_path)
    for name in ("weak", "strong"):
        with Store.read(tmp_path / name) as store:
            assert store.missing() == 0
        assert stat.S_IMODE((tmp_path / name / "audit.sqlite").stat().st_mode) == 0o600


def test_a_second_run_computes_nothing_again(
    toy: Paper[Order], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reproduce(toy, Order(), tmp_path)

    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(Federated, "train", never)
    again = reproduce(toy, Order(), tmp_path)
    assert again.model_copy(update={"seconds": 0.0}) == first.model_copy(update={"seconds": 0.0})


def test_progress_says_which_plan(toy: Paper[Order], tmp_path: Path) -> None:
    told: list[Step] = []
    reproduce(toy, Order(), tmp_path, progress=told.append)
    ended = [step.text.split(":")[0] for step in told if step.status is not None]
    assert list(dict.fromkeys(ended)) == ["weak (1 of 2)", "strong (2 of 2)"]


def test_what_fails_leaves_a_gap_and_is_told(
    toy: Paper[Order], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = Federated.train

    def sometimes(self: Federated, defence: Any, seed: int, progress: Any = None, enter: Any = None) -> Any:
        if getattr(defence, "std", 0) == 1.0:
            raise ValueError("No luck")
        return train(self, defence, seed, progress, enter)

    monkeypatch.setattr(Federated, "train", sometimes)
    done = reproduce(toy, Order(), tmp_path)
    assert [record.status for record in done.failed] == [Status.FAILED]
    assert "No luck" in done.failed[0].reason
    assert done.tables["accuracy"][1]["accuracy"] is None
    assert not done.checks[0].holds


def test_remarks_say_what_was_cut_what_was_not_read_and_where_gaps_are(
    toy: Paper[Order], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reproduce(toy, Order(), tmp_path / "plain").remarks == ()

    def refuse(*_: Any) -> None:
        raise Refusal("Not with me.")

    monkeypatch.setattr(Federated, "train", refuse)
    done = reproduce(toy, Order(steps=1, data="sets"), tmp_path / "cut")
    cut, unread, gap = done.remarks
    assert cut.startswith("Cut by --steps 1: at most 1 of everything that is counted. ")
    assert unread == "The scale `smoke` runs on bundled data: what `--data` names was not read."
    assert gap.startswith("4 cells refused, a gap in the tables: ")
    assert "Not with me." in gap
