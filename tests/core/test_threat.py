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
from leaktight.core.run import Inside, Run
from leaktight.core.task import Batch, Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.task import classification


@pytest.fixture
def run() -> Run:
    model = Model(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 2))
    task = classification(model, (3,), 2)
    batch = Batch(torch.rand(2, 3), torch.tensor([0, 1]))
    transcript, inside = [], {}
    for name in ("client-0", "client-1"):
        ask = Message(Kind.PARAMETERS, "server", name, 0, task.public_parameters())
        reply = Message(Kind.GRADIENT, name, "server", 0, task.public_parameters(), {"examples": 2.0, "local_steps": 1.0})
        transcript += [ask, reply]
        inside[reply.key] = Inside(task, batch, batch, reply, reply)
    locals_ = {"client-0": Local("client-0", 0, memory={"own": torch.ones(1)})}
    return Run(tuple(transcript), task, Undefended(), inside, locals_, auxiliary=Batch(torch.rand(5, 3), torch.zeros(5).long()))


def test_a_server_sees_every_exchange_and_a_participant_its_own_messages(run):
    assert len(ThreatModel(seat="server").view(run).exchanges()) == 2
    assert len(ThreatModel(seat="wire").view(run).messages) == 4
    assert [message.key for message in ThreatModel(seat="client-1").view(run).messages] == [("server", 0), ("client-1", 0)]


def test_nobody_attacks_himself(run):
    assert not ThreatModel(seat="client-1").view(run).exchanges()


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


def test_a_seat_has_a_copy_of_its_own_memory_and_no_other(run):
    view = ThreatModel(seat="client-0").view(run)
    view.memory["own"].zero_()
    assert run.locals["client-0"].memory["own"].item() == 1
    assert ThreatModel(seat="client-1").view(run).memory == {}


def test_no_road_leads_from_a_view_to_the_truth(run):
    view = ThreatModel(knows=frozenset()).view(run)
    truth = {id(found.raw.inputs) for found in run.inside.values()} | {id(found) for found in run.inside.values()} | {id(run)}
    # Modules, classes and functions lead everywhere in Python; an object graph ends at them.
    ends = (type, type(gc), type(lambda: 0))
    seen, queue = set(), [view]
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, ends):
            continue
        seen.add(id(item))
        queue += gc.get_referents(item)
    assert len(seen) > 50
    assert not seen & truth


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
