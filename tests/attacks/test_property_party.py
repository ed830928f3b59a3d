"""An active participant: shared features learn to tell who has the property, by a gradient on top of its honest one."""

from __future__ import annotations

import pytest
import torch

from leaktight.attacks import PropertyInference
from leaktight.attacks.property_party import SCOPE, PropertyParty
from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Message, layer_of
from leaktight.core.party import Seat
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits, Parity
from leaktight.learning import ByProperty, FedAvg, Federated, FedSGD, Sgd
from leaktight.metrics import PropertyAuc
from leaktight.models import MLP

SETTINGS = {"model": MLP(hidden=(16,)), "participants": 2, "rounds": 60, "moments": 5, "schedule": ByProperty()}


def seated(data=None, protocol=None):
    """Return the seat of a first participant, and a message with the initial parameters."""
    scenario = Federated(
        **{**SETTINGS, "data": data or Parity(), "protocol": protocol or FedSGD(), "schedule": ByProperty()}
    )
    loaded = scenario.data.load()
    task = scenario.task(loaded, 0)
    client = scenario.clients(task, loaded, Undefended(), 0)[0]
    ask = Message(Kind.PARAMETERS, "server", client.name, 0, task.public_parameters(), {"participants": 2.0})
    return Seat(client.name, task, client.data, client.local, client), ask


@pytest.mark.parametrize("protocol", [FedSGD(), FedAvg(local_steps=2, optimiser=Sgd(learning_rate=0.1))], ids=str)
def test_it_adds_to_what_the_honest_owner_sends_below_the_head(protocol):
    (seat, ask), (other, _) = seated(protocol=protocol), seated(protocol=protocol)
    sent, honest = PropertyParty(1.0, seat), other.honest.respond(ask)
    # Of zeros the second head gives no gradient to the features: it has one from the second turn on.
    first, second = sent.respond(ask), sent.respond(ask)
    assert all(torch.equal(first.tensors[name], tensor) for name, tensor in honest.tensors.items())
    changed = {
        layer_of(name) for name, tensor in honest.tensors.items() if not torch.equal(second.tensors[name], tensor)
    }
    assert changed == {"body.linear1"}
    assert seat.local.memory[SCOPE]["head"].any()


def test_without_a_property_of_its_own_there_is_nothing_to_teach():
    seat, ask = seated()
    blind = Seat(seat.name, seat.task, Digits().load().train, seat.local, seat.honest)
    with pytest.raises(Refusal, match="The data has no private property"):
        PropertyParty(1.0, blind).respond(ask)


def test_off_it_is_the_passive_attack():
    assert not PropertyInference().active
    assert PropertyInference(active_weight=1.0).active
    assert "active_weight" not in PropertyInference().to_dict()
    seat, _ = seated()
    assert PropertyInference().take(seat) is seat.honest


def test_shared_features_learn_to_tell_the_property():
    scenario = Federated(data=Parity(), **SETTINGS)
    attack = PropertyInference(gradients=80, classifier="logistic", active_weight=3.0)
    threat = ThreatModel(seat="client-0", knows=frozenset({Knows.AUXILIARY, Knows.LOCAL_STEPS}))
    probe = Attempt(attack=attack, threat=threat, metrics=(PropertyAuc(),))
    training = scenario.train(Undefended(), 0, enter=probe.enter)
    run = scenario.observe(training, Undefended(), Observation("training", 16, 40, 0), enter=probe.enter)
    [found] = probe.read(run, stream(0, "attack")).readings
    assert found.value > 0.7
    data = scenario.data.load().test
    head = run.locals["client-0"].memory[SCOPE]["head"]
    shared = run.public.model
    shared.load_state_dict(training.snapshots["end"].parameters, strict=False)
    told = shared.features(data.inputs).flatten(1) @ head[:-1] + head[-1] > 0
    assert (told == (data.properties == 1)).double().mean() > 0.7
