"""Sealing: what is sealed is trained like the rest, and is in nothing that any seat sees."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, layer_of
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import Sealed
from leaktight.learning import FedAvg, Federated, FedSGD, RoundRobin
from leaktight.learning.protocol import Protocol
from leaktight.models import MLP
from leaktight.testing.defences import check_defence
from leaktight.testing.toys import toy_message

PROTOCOLS = [FedSGD(), FedSGD(aggregation="secure"), FedAvg(local_steps=2), RoundRobin(local_steps=1)]


def test_it_keeps_the_promises_of_a_defence() -> None:
    check_defence(Sealed(layers=("head",)))


def test_what_is_sealed_is_whole_inside_and_gone_outside() -> None:
    clean = toy_message()
    sent = Sealed(layers=("head",)).on_message(clean, Local("client-0", seed=0))
    assert set(map(layer_of, sent.tensors)) == {"body.1"}
    assert set(map(layer_of, sent.sealed)) == {"head"}
    assert all(sent.whole()[name] is tensor for name, tensor in clean.tensors.items())


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_the_model_learns_as_without_it_and_no_seat_sees_the_layer(protocol: Protocol) -> None:
    scenario = Federated(data=Digits(), model=MLP(hidden=(4,)), participants=2, rounds=2, protocol=protocol)
    sealed = Sealed(layers=("head",))
    open_, closed = (scenario.train(defence, seed=0) for defence in (Undefended(), sealed))
    final = [one.snapshots["end"].parameters for one in (open_, closed)]
    assert all(torch.equal(tensor, final[1][name]) for name, tensor in final[0].items())
    run = scenario.observe(closed, sealed, Observation(stage="end", victims=2, batch_size=4, seed=0))
    for seat in ("server", "wire"):
        view = ThreatModel(seat=seat, knows=frozenset({Knows.LOCAL_STEPS})).view(run)
        for message in view.of(Kind.GRADIENT, Kind.UPDATE):
            assert not message.sealed
            assert set(map(layer_of, message.tensors)) == {"body.linear1"}


def test_where_messages_really_leave_it_is_refused() -> None:
    sent = Sealed(layers=("head",)).on_message(toy_message(), Local("client-0", seed=0))
    with pytest.raises(Refusal, match="The layer `head` is sealed: it may travel only between trusted enclaves"):
        sent.outgoing()
    assert toy_message().outgoing().keys() == toy_message().tensors.keys()


def test_a_layer_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InvalidValue, match="There is no layer named `tail`"):
        Sealed(layers=("tail",)).on_message(toy_message(), Local("client-0", seed=0))


def test_what_is_broken_is_not_aggregated() -> None:
    clean = toy_message()
    clean.tensors["head.bias"].fill_(float("nan"))
    with pytest.raises(InvalidValue, match="sealed part"):
        Sealed(layers=("head",)).on_message(clean, Local("client-0", seed=0))
