"""Threat models: a view shows what the seat sees and what is granted, and has no road to the truth."""

import dataclasses
import gc
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.run import GroundTruth, Run
from leaktight.core.task import Batch, Model
from leaktight.core.threat import HINTS, Knows, ThreatModel
from leaktight.learning.task import classification


@pytest.fixture
def run() -> Run:
    model = Model(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 2))
    task = classification(model, (3,), 2)
    batch = Batch(torch.rand(2, 3), torch.tensor([0, 1]))
    transcript, truths = [], {}
    for name in ("client-0", "client-1"):
        ask = Message(Kind.PARAMETERS, "server", name, 0, task.public_parameters())
        reply = Message(
            Kind.GRADIENT, name, "server", 0, task.public_parameters(), {"examples": 2.0, "local_steps": 1.0}
        )
        transcript += [ask, reply]
        plain = reply.map(torch.clone)
        owned = Batch(torch.rand(7, 3), torch.zeros(7).long())
        truths[reply.key] = GroundTruth(task, batch, batch, reply, reply, plain, owned)
    locals_ = {"client-0": Local("client-0", 0, memory={"own": torch.ones(1)})}
    return Run(
        tuple(transcript), task, Undefended(), truths, locals_, auxiliary=Batch(torch.rand(5, 3), torch.zeros(5).long())
    )


def test_a_server_sees_every_exchange_and_a_participant_its_own_messages(run):
    assert len(ThreatModel(seat="server").view(run).exchanges()) == 2
    assert len(ThreatModel(seat="wire").view(run).messages) == 4
    assert [message.key for message in ThreatModel(seat="client-1").view(run).messages] == [
        ("server", 0),
        ("client-1", 0),
    ]


def test_nobody_attacks_himself(run):
    assert not ThreatModel(seat="client-1").view(run).exchanges()


@pytest.mark.long
def test_a_key_is_the_same_in_every_process():
    code = "from leaktight.core.threat import *; print(ThreatModel(knows=frozenset(Knows)).key)"
    keys = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        keys.add(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)
    assert len(keys) == 1


def test_an_unknown_seat_is_refused(run):
    with pytest.raises(Refusal, match="sees no message"):
        ThreatModel(seat="client-9").view(run)


def test_nothing_is_known_that_is_not_granted(run):
    view = ThreatModel(knows=frozenset()).view(run)
    assert not view.labels
    assert view.auxiliary is None
    assert view.defence is None
    assert "local_steps" not in view.exchanges()[0].sent.facts
    full = ThreatModel(knows=frozenset(Knows)).view(run)
    assert full.labels["client-0", 0].tolist() == [0, 1]
    assert full.auxiliary is not None
    assert full.defence == Undefended()
    assert full.exchanges()[0].sent.facts["local_steps"] == 1


def hinted(labels, seed=0):
    """Return the hints about one message with these labels."""
    batch = Batch(torch.zeros(len(labels), 3), torch.tensor(labels))
    message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 4, {"gradient": torch.zeros(len(labels), 2)})
    task = classification(Model(nn.Identity(), nn.Linear(3, 2)), (3,), 2)
    truths = {message.key: GroundTruth(task, batch, batch, message, message)}
    run = Run((message,), task, Undefended(), truths, {"label-party": Local("label-party", seed)})
    return ThreatModel(seat="feature-party", knows=frozenset({Knows.HINTS})).view(run).hints[message.key]


def test_hints_are_the_labels_of_a_few_examples_of_each_class():
    labels = [1] * 20 + [0] * 80
    found = hinted(labels)
    assert found.labels.tolist() == [labels[position] for position in found.positions.tolist()]
    assert (len(found.of(1)), len(found.of(0)), len(set(found.positions.tolist()))) == (HINTS, HINTS, 2 * HINTS)


@pytest.mark.parametrize(("positives", "told"), [(0, 0), (1, 0), (2, 1), (3, 1), (9, 4), (10, 5), (11, 5)])
def test_at_least_half_of_a_class_stays_unknown(positives, told):
    assert len(hinted([1] * positives + [0] * 30).of(1)) == told


def test_hints_come_from_a_stream_of_their_own():
    labels = [1] * 50 + [0] * 50
    one, same, other = (hinted(labels, seed).positions.tolist() for seed in (0, 0, 1))
    assert one == same != other
    assert one != sorted(one)


def test_hints_are_granted_alone_and_change_no_other_key(run):
    assert not ThreatModel(knows=frozenset(Knows) - {Knows.HINTS}).view(run).hints
    view = ThreatModel(knows=frozenset({Knows.HINTS})).view(run)
    assert set(view.hints) == set(run.truths)
    assert not view.labels
    assert ThreatModel().to_dict() == {"seat": "server", "knows": ["local_steps"]}


def test_a_seat_has_a_copy_of_its_own_memory_and_no_other(run):
    view = ThreatModel(seat="client-0").view(run)
    view.memory["own"].zero_()
    assert run.locals["client-0"].memory["own"].item() == 1
    assert ThreatModel(seat="client-1").view(run).memory == {}


def reachable(start: object) -> set[int]:
    # Modules, classes and functions lead everywhere in Python; an object graph ends at them.
    ends = (type, type(gc), type(lambda: 0))
    seen, queue = set(), [start]
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, ends):
            continue
        seen.add(id(item))
        queue += gc.get_referents(item)
    return seen


@pytest.mark.parametrize("knows", [frozenset(), frozenset(Knows)], ids=["nothing", "everything"])
@pytest.mark.parametrize("seat", ["server", "wire", "client-0"])
def test_no_road_leads_from_a_view_to_the_truth(run, seat, knows):
    seen = reachable(ThreatModel(seat=seat, knows=knows).view(run))
    truth = {id(run)}
    for found in run.truths.values():
        private = (
            found,
            found.raw,
            found.raw.inputs,
            found.raw.labels,
            found.owned,
            found.owned.inputs,
            found.owned.labels,
        )
        truth |= {id(item) for item in (*private, found.plain, *found.plain.tensors.values())}
    assert len(seen) > 50
    assert not seen & truth
    assert truth <= reachable(run)


def test_the_ground_truth_is_not_printed(run):
    found = run.truths["client-0", 0]
    assert repr(found) == "GroundTruth()"
    assert "truths" not in repr(run)


def test_changing_a_view_changes_no_run(run):
    view = ThreatModel(knows=frozenset(Knows)).view(run)
    view.auxiliary.inputs.zero_()
    assert run.auxiliary.inputs.any()
    before = run.transcript[1].tensors["head.bias"].clone()
    view.messages[1].tensors["head.bias"].add_(1)
    next(iter(view.task.model.parameters())).data.add_(1)
    assert torch.equal(run.transcript[1].tensors["head.bias"], before)
    assert not torch.equal(view.task.model.body[0].weight, run.public.model.body[0].weight)


def test_a_view_cannot_be_changed(run):
    with pytest.raises(dataclasses.FrozenInstanceError):
        ThreatModel().view(run).seat = "wire"
