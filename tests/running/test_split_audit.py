"""An audit of split learning from a plan to records: built from TOML, validated, trained once, kept and observed."""

from __future__ import annotations

import tomllib
from typing import ClassVar, Literal

import pytest
import torch

from leaktight.core import registry
from leaktight.core.attack import Attack, Scores
from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.message import Kind
from leaktight.core.metric import Metric, Reading
from leaktight.core.record import Status
from leaktight.core.scenario import Observation
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated, Split
from leaktight.plans.plan_file import parse_plan
from leaktight.plans.validation import validate_plan
from leaktight.running.audit_task import AuditTask
from leaktight.running.audit_worker import AuditWorker
from leaktight.running.fingerprint import Fingerprints
from leaktight.running.training_cache import TrainingCache, decode, encode
from leaktight.statistics.auc import auc

TEXT = """
[scenario]
kind = "split"
cut = "relu2"
label_party = ["r0*", "r1c0"]
rounds = 40
batch_size = 64
moments = 5
data = "rare_digit"
optimiser = { kind = "adam", learning_rate = 0.002 }

[scenario.model]
kind = "wide_deep"
hidden = [16, 8]

[threat]
seat = "feature-party"

[[defences]]
kind = "gaussian_noise"
std = [0.0, 0.01]

[[defences]]
kind = "dp_sgd"

[[attacks]]
kind = "test_norm"

[[metrics]]
kind = "test_leak"

[grid]
batch_sizes = [64]
stages = ["initial", "training"]
victims = 10
"""


class Norm(Attack):
    """Scores by the gradient's norm."""

    kind: Literal["test_norm"] = "test_norm"
    claims: ClassVar[frozenset[str]] = frozenset({"scores"})

    def run(self, view, rng):
        messages = view.of(Kind.CUT_GRADIENT)
        return Scores(tuple(m.key for m in messages), tuple(m.tensors["gradient"].norm(dim=1) for m in messages))


class Leak(Metric):
    """Grades scores by the AUC against the labels, message by message."""

    kind: Literal["test_leak"] = "test_leak"
    claim: ClassVar[str] = "scores"

    def grade(self, guess, truth, rng, public=None):
        each = [auc(scores, ground_truth.used.labels) for scores, ground_truth in zip(guess.values, truth, strict=True)]
        return (Reading(name="leak_auc", value=torch.tensor(each).median().item(), each=tuple(each), chance=0.5),)


@pytest.fixture(autouse=True)
def known():
    """Register the two for these tests alone."""
    registry.classes("attack")
    registry.add("attack", "test_norm", Norm)
    registry.add("metric", "test_leak", Leak)
    yield
    registry._classes["attack"].pop("test_norm")
    registry._classes["metric"].pop("test_leak")


registry._classes["attack"].pop("test_norm")
registry._classes["metric"].pop("test_leak")


def document(**scenario):
    found = tomllib.loads(TEXT)
    found["scenario"] |= scenario
    return found


def test_a_plan_of_split_learning_is_built_from_toml():
    plan = parse_plan(document())
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Split)
    assert (scenario.label_party, scenario.model.kind, scenario.data.kind) == (
        ("r0*", "r1c0"),
        "wide_deep",
        "rare_digit",
    )
    validate_plan(plan)
    purposes = [cell.purpose for cell in plan.cells()]
    assert (purposes.count("measure"), purposes.count("control"), purposes.count("null")) == (8, 1, 1)


def test_every_cell_yields_a_record_and_the_leak_is_there_only_undefended(tmp_path):
    training_cache = TrainingCache(tmp_path)
    plan = parse_plan(document())
    results = {cell: AuditWorker(training_cache)(AuditTask(cell)) for cell in plan.cells()}
    leaks = {}
    for cell, outcome in results.items():
        if cell.defence.kind == "dp_sgd":
            assert (outcome.status, "no place for that" in outcome.reason) == (Status.REFUSED, True)
            continue
        assert outcome.status is Status.DONE, outcome.reason
        assert outcome.record.reading("auc").chance == 0.5
        assert outcome.record.reading("accuracy") is not None
        assert len(outcome.record.reading("leak_auc").each) == 10
        leaks[cell.purpose, str(cell.defence), cell.stage] = outcome.record.reading("leak_auc").value
    assert leaks["measure", "none", "training"] > 0.8
    assert abs(leaks["measure", "gaussian_noise", "training"] - 0.5) < 0.15
    assert abs(leaks["null", "none", "initial"] - 0.5) < 0.15
    assert leaks["measure", "gaussian_noise(std=0.0)", "training"] == leaks["measure", "none", "training"]


def test_a_kept_training_is_observed_like_a_fresh_one():
    [scenario] = parse_plan(document()).scenarios.values()
    training = scenario.train(GaussianNoise(std=0.01), 0)
    kept = decode(encode(training))
    assert list(kept.snapshots) == list(training.snapshots)
    for stage in scenario.stages:
        observation = Observation(stage, 64, 5, 0)
        one, other = (scenario.observe(found, GaussianNoise(std=0.01), observation) for found in (training, kept))
        for mine, theirs in zip(one.transcript, other.transcript, strict=True):
            assert mine.key == theirs.key
            assert all(torch.equal(mine.tensors[name], theirs.tensors[name]) for name in mine.tensors)


def test_the_fingerprint_follows_the_data_and_the_cut():
    fingerprints = Fingerprints()
    made = {
        fingerprints.of(scenario, seed, Undefended()).digest
        for seed in (0, 1)
        for settings in ({}, {"cut": "relu1"}, {"data": {"kind": "rare_digit", "digit": 3}})
        for scenario in parse_plan(document(**settings)).scenarios.values()
    }
    assert len(made) == 6


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"grid": {"batch_sizes": [1], "stages": ["initial"]}}, "must be at least 2 in split learning.* Got 1 instead"),
        (
            {"grid": {"batch_sizes": [64, 5000]}},
            "must be from 1 to the 1438 rows that the parties hold. Got 5000 instead",
        ),
        ({"threat": {"seat": "server"}}, "There is no seat `server` for test_norm in this scenario"),
    ],
    ids=["batch of one", "large batch", "seat"],
)
def test_a_plan_that_cannot_be_played_is_said_before_it_starts(change, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        validate_plan(parse_plan(document() | change))


def test_a_column_that_is_not_there_is_said_before_it_starts():
    with pytest.raises(InvalidValue, match="There is no column `age` for the label party"):
        validate_plan(parse_plan(document(label_party=["age"])))


def test_only_split_learning_can_be_observed_throughout():
    found = document() | {"scenario": {"data": "digits", "model": "mlp"}, "threat": {"seat": "server"}}
    plan = parse_plan(found)
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    with pytest.raises(
        InvalidValue, match=r"There is no stage `training` in a scenario of kind federated. Known are: `initial`"
    ):
        validate_plan(plan)


def test_faults_in_a_split_plan_are_shown_with_their_place():
    with pytest.raises(InvalidValue) as error:
        parse_plan(document(rounds=-1, cuts="relu1", model={"kind": "wide_deep", "hidden": []}))
    text = str(error.value)
    assert "scenario: split has no setting `cuts`. Did you mean `cut`?" in text
    assert "scenario: The `rounds` of split must be at least 0. Got -1 instead." in text
    assert "scenario.model: The `hidden` of wide_deep" in text
