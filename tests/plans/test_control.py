from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

from leaktight.attacks import Clustering, Direction, GradientNorm
from leaktight.core.defence import Undefended
from leaktight.core.message import Kind
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.record import Cell
from leaktight.core.run import Run
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.findings.flags_soundness import is_exact, null_above_chance
from leaktight.learning.federated import Federated
from leaktight.learning.split import Split
from leaktight.metrics import PSNR, LeakAUC
from leaktight.models import MLP
from leaktight.plans.control import control_cells, null_cells, nullify
from leaktight.running.audit_task import AuditTask
from leaktight.running.audit_worker import AuditWorker
from leaktight.running.training_cache import TrainingCache


@pytest.fixture
def run(toys: ModuleType) -> Run:
    scenario = toys.ToyScenario()
    return scenario.observe(scenario.train(Undefended(), 0), Undefended(), Observation("initial", 1, 6, 0))


def test_noise_of_the_same_norm_and_shape_in_every_honest_message(run: Run) -> None:
    null = nullify(run, stream(0, "null"))
    honest = 0
    for before, after in zip(run.transcript, null.transcript, strict=True):
        if before.kind is Kind.PARAMETERS:
            assert after is before
            continue
        honest += 1
        assert (before.key, before.facts) == (after.key, after.facts)
        for name, tensor in before.tensors.items():
            noise = after.tensors[name]
            assert noise.shape == tensor.shape
            assert noise.norm().item() == pytest.approx(tensor.norm().item(), rel=1e-5)
            assert not torch.allclose(noise, tensor)
    assert honest == 6


def test_the_noise_does_not_follow_the_message(run: Run) -> None:
    null = nullify(run, stream(0, "null"))
    pairs = zip(run.transcript, null.transcript, strict=True)
    cosines = [
        torch.cosine_similarity(a.tensors["body.1.weight"].flatten(), b.tensors["body.1.weight"].flatten(), dim=0)
        for a, b in pairs
        if a.kind is Kind.GRADIENT
    ]
    assert torch.stack(cosines).mean().abs() < 0.5


def test_the_truth_stays_and_sent_is_what_was_sent(run: Run) -> None:
    null = nullify(run, stream(0, "null"))
    for message in null.transcript:
        if message.key in null.truths:
            ground_truth = null.truths[message.key]
            assert ground_truth.sent is message
            assert ground_truth.raw is run.truths[message.key].raw
            assert ground_truth.clean is run.truths[message.key].clean


def test_the_same_stream_gives_the_same_noise_and_the_run_is_unchanged(run: Run) -> None:
    before = [message.tensors["body.1.weight"].clone() for message in run.transcript]
    one, two = nullify(run, stream(1, "null")), nullify(run, stream(1, "null"))
    assert all(
        torch.equal(a.tensors["head.bias"], b.tensors["head.bias"])
        for a, b in zip(one.transcript, two.transcript, strict=True)
    )
    assert all(torch.equal(a, m.tensors["body.1.weight"]) for a, m in zip(before, run.transcript, strict=True))


def test_a_tensor_of_zeros_stays_zero(run: Run) -> None:
    flat = run.transcript[1].map(torch.zeros_like)
    null = nullify(Run((flat,), run.public, run.defence, {flat.key: run.truths[flat.key]}), stream(0))
    assert all(tensor.abs().sum() == 0 for tensor in null.transcript[0].tensors.values())


def test_one_null_cell_for_each_probe_and_seed(toy_plan: Callable[..., Any], toys: ModuleType) -> None:
    plan = toy_plan(
        attacks={"one": {}, "two": {"blur": 0.1}},
        defences=(toys.ToyNoise(),),
        seeds=(0, 1),
        batch_sizes=(2, 1),
        stages=("end", "early"),
    )
    nulls = [cell for cell in plan.cells() if cell.purpose == "null"]
    assert sorted((cell.label, cell.seed) for cell in nulls) == [("one", 0), ("one", 1), ("two", 0), ("two", 1)]
    assert {(cell.defence.kind, cell.batch_size, cell.stage) for cell in nulls} == {("none", 2, "end")}
    assert not {cell.key for cell in nulls} & {cell.key for cell in plan.cells() if cell.purpose == "measure"}
    assert null_cells([]) == []


def test_a_federation_has_a_control_and_a_toy_has_none(toys: ModuleType) -> None:
    scenario = Federated.model_validate(
        {
            "data": {"kind": "digits"},
            "model": {"kind": "dlnet"},
            "participants": 3,
            "protocol": {"kind": "fedavg", "local_steps": 5, "aggregation": "secure"},
        }
    )
    control = scenario.control().scenario
    assert isinstance(control, Federated)
    assert (control.model.kind, control.protocol.kind, control.protocol.aggregation) == ("mlp", "fedsgd", "mean")
    assert (control.rounds, control.participants, control.data) == (0, 3, scenario.data)
    assert toys.ToyScenario().control() is None
    assert control_cells(toys.ToyScenario(), (0,), 4, ()) == []
    cells = control_cells(scenario, (0, 7), 4, (PSNR(),))
    assert [(cell.seed, cell.purpose, cell.batch_size) for cell in cells] == [(0, "control", 1), (7, "control", 1)]


def split(form: str = "numbers", **settings: Any) -> Split:
    data = {"kind": "rare_digit", "form": form}
    model = {"kind": "wide_deep", "hidden": [16, 8]} if form != "image" else {"kind": "convnet"}
    own = {"label_party": ["r0*"]} if form != "image" else {}
    return Split.model_validate({"data": data, "model": model, "rounds": 20, "batch_size": 64, **own, **settings})


def test_the_control_of_split_learning_has_a_linear_top() -> None:
    scenario = split(cut="relu1", feature_defence={"kind": "gaussian_noise", "std": 0.1})
    found = scenario.control()
    control = found.scenario
    assert isinstance(control, Split)
    assert (control.model, control.cut, control.rounds) == (scenario.model, "", 0)
    assert (control.feature_defence.kind, control.data, control.label_party) == ("none", scenario.data, ("r0*",))
    assert split("image").control().scenario.model.kind == "mlp"
    assert (found.attack, found.batch_size) == ("direction", 64)
    assert (found.threat.seat, found.threat.knows) == ("feature-party", {Knows.HINTS})


@pytest.mark.parametrize("form", ["numbers", "levels", "image"])
def test_the_control_of_split_learning_tells_every_label(form: str, tmp_path: Any) -> None:
    (cell,) = control_cells(split(form), (3,), 4, (LeakAUC(),))
    assert (cell.label, cell.purpose, cell.batch_size) == ("direction", "control", 64)
    record = AuditWorker(TrainingCache(tmp_path))(AuditTask(cell)).record
    assert record is not None
    reading = record.reading("leak_auc")
    assert reading is not None
    assert reading.each == (1.0,) * 4
    assert is_exact(record)


@pytest.mark.parametrize(
    "attack", [GradientNorm(layer="all"), Direction(layer="first"), Clustering(layer="all")], ids=str
)
def test_a_null_view_of_split_learning_is_scored_at_the_cut_alone(attack: Any, tmp_path: Any) -> None:
    probe = Attempt(
        attack=attack, threat=ThreatModel(seat="feature-party", knows=frozenset({Knows.HINTS})), metrics=(LeakAUC(),)
    )
    measured = Cell(
        scenario=split(), defence=Undefended(), probe=probe, stage="training", batch_size=128, victims=20, label="it"
    )
    (cell,) = null_cells([measured])
    assert (cell.purpose, cell.label, cell.stage, cell.probe.attack.layer) == ("null", "it", "training", "cut")
    assert measured.probe.attack.layer == attack.layer
    record = AuditWorker(TrainingCache(tmp_path))(AuditTask(cell)).record
    assert record is not None
    assert {reading.layer for reading in record.readings} == {None}
    assert abs(record.reading("leak_auc").value - record.reading("leak_auc").chance) < 0.1
    assert null_above_chance([record]) == []


def test_in_a_null_view_a_participant_can_tell_nothing_of_the_others() -> None:
    scenario = Federated(data=Digits(), model=MLP(hidden=(8,)), participants=3, rounds=8, moments=2)
    run = scenario.observe(scenario.train(Undefended(), 0), Undefended(), Observation("training", 4, 12, 0))
    null = nullify(run, stream(0, "null"))
    seat = ThreatModel(seat="client-1")
    told, noise = (seat.view(one).exchanges() for one in (run, null))
    assert len(told) == len(noise) == 4
    for one, other in zip(told, noise, strict=True):
        for name, tensor in other.sent.tensors.items():
            likeness = torch.cosine_similarity(tensor.flatten(), one.sent.tensors[name].flatten(), dim=0)
            assert abs(likeness) < (0.9 if tensor.numel() < 100 else 0.2)
    for before, after in zip(told, noise, strict=True):
        moved, aimless = (
            torch.cat([tensor.flatten() for tensor in exchange.parameters.values()]).norm()
            for exchange in (before, after)
        )
        assert torch.isclose(moved, aimless, rtol=0.2)
