from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.message import Message
from leaktight.core.party import Party
from leaktight.data import Digits
from leaktight.defences import GaussianNoise, Polarization, TopK
from leaktight.learning.federated import Federated
from leaktight.learning.joint import CURVE_FILE, MODEL_FILE, JointTraining, Round, train_here
from leaktight.learning.protocol import FedAvg, FedSGD, Protocol, RoundRobin
from leaktight.models import MLP


def training(protocol: Protocol | None = None, **settings: object) -> JointTraining:
    scenario = Federated(
        data=Digits(), model=MLP(hidden=(8,)), rounds=3, participants=3, protocol=protocol or FedAvg(local_steps=2)
    )
    return JointTraining(scenario=scenario, **{"seed": 5, **settings})


@pytest.mark.parametrize("protocol", [FedSGD(), FedAvg(local_steps=2), RoundRobin(order="random", download=0.5)], ids=str)
def test_it_is_what_an_audit_trains(protocol: Protocol) -> None:
    one = training(protocol, defence=GaussianNoise(std=0.01))
    wanted = one.scenario.train(one.defence, one.seed)
    found = one.lead(one.parties())
    for name, tensor in wanted.snapshots["end"].parameters.items():
        assert torch.equal(found.parameters[name], tensor)
    assert found.utility == wanted.utility
    assert [each.played for each in found.curve] == [1, 2, 3]
    assert found.curve[-1].readings == wanted.utility


@pytest.mark.parametrize("defence", [Undefended(), TopK(), Polarization()], ids=str)
def test_a_party_made_anew_for_each_message_answers_the_same(defence: object) -> None:
    one = training(defence=defence)
    memories: dict[str, object] = {f"client-{number}": {} for number in range(3)}

    def anew(parties: list[Party], asks: list[Message]) -> list[Message]:
        answers = []
        for ask in asks:
            party = one.party(int(ask.receiver.removeprefix("client-")), memories[ask.receiver])
            answers.append(party.respond(ask))
            memories[ask.receiver] = party.local.memory
        return answers

    wanted, found = one.lead(one.parties()), one.lead(one.parties(), anew)
    assert all(torch.equal(found.parameters[name], tensor) for name, tensor in wanted.parameters.items())


def test_a_party_may_own_something_else() -> None:
    one = training()
    whole = one.party(0, {}, own=Digits())
    assert len(whole.data) == len(one.data.train) > len(one.party(0, {}).data)


def test_the_files(tmp_path: Path) -> None:
    told: list[Round] = []
    threads = torch.get_num_threads()
    found = train_here(training(), tmp_path, told.append)
    assert torch.get_num_threads() == threads
    held = json.loads((tmp_path / CURVE_FILE).read_text())
    assert held["engine"] == "local"
    assert [one["round"] for one in held["rounds"]] == [each.played for each in told] == [1, 2, 3]
    assert held["utility"] == [reading.to_dict() for reading in found.utility]
    assert JointTraining.model_validate(held["training"]) == training()
    tensors = safetensors.torch.load_file(tmp_path / MODEL_FILE)
    assert tensors.keys() == found.parameters.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in found.parameters.items())
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_other_settings_are_refused() -> None:
    with pytest.raises(InvalidValue, match="has no setting `rounds`"):
        JointTraining.model_validate({**training().to_dict(), "rounds": 3})
