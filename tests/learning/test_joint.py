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
from leaktight.defences import ClassKeys, GaussianNoise, Polarization, TopK
from leaktight.learning.evaluate import accuracy
from leaktight.learning.federated import Federated
from leaktight.learning.joint import CURVE_FILE, MODEL_FILE, REVEAL_FILE, JointTraining, Round, read_trained, train_here
from leaktight.learning.protocol import FedAvg, FedSGD, Protocol, RoundRobin
from leaktight.models import MLP


def training(protocol: Protocol | None = None, **settings: object) -> JointTraining:
    scenario = Federated(
        data=Digits(), model=MLP(hidden=(8,)), rounds=3, participants=3, protocol=protocol or FedAvg(local_steps=2)
    )
    return JointTraining(scenario=scenario, **{"seed": 5, **settings})


@pytest.mark.parametrize(
    "protocol", [FedSGD(), FedAvg(local_steps=2), RoundRobin(order="random", download=0.5)], ids=str
)
def test_it_is_what_an_audit_trains(protocol: Protocol) -> None:
    one = training(protocol, defence=GaussianNoise(std=0.01))
    wanted = one.scenario.train(one.defence, one.seed)
    found = one.lead(one.parties())
    for name, tensor in wanted.snapshots["end"].parameters.items():
        assert torch.equal(found.parameters[name], tensor)
    utility = tuple(reading.without_outcomes() for reading in wanted.utility)
    assert found.utility == utility
    assert [each.played for each in found.curve] == [1, 2, 3]
    assert found.curve[-1].readings == utility


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
    assert held["backend"] == "local"
    assert [one["round"] for one in held["rounds"]] == [each.played for each in told] == [1, 2, 3]
    assert held["utility"] == [reading.to_dict() for reading in found.utility]
    assert JointTraining.model_validate(held["training"]) == training()
    tensors = safetensors.torch.load_file(tmp_path / MODEL_FILE)
    assert tensors.keys() == found.parameters.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in found.parameters.items())
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("defence", [Undefended(), ClassKeys(dimensions=64), Polarization()], ids=str)
def test_a_model_that_is_read_is_as_good_as_was_told(tmp_path: Path, defence: object) -> None:
    found = train_here(training(defence=defence), tmp_path)
    task, test = read_trained(tmp_path), Digits().load().test
    with torch.no_grad():
        scores = task.predict(task.model(test.inputs))
    told = json.loads((tmp_path / CURVE_FILE).read_text())["utility"][0]
    assert told["name"] == "accuracy"
    assert accuracy(scores, test.labels) == pytest.approx(told["value"]) == pytest.approx(found.utility[0].value)
    assert (tmp_path / REVEAL_FILE).exists() == isinstance(defence, ClassKeys)


def test_without_the_keys_nothing_is_scored(tmp_path: Path) -> None:
    train_here(training(defence=ClassKeys(dimensions=64)), tmp_path)
    (tmp_path / REVEAL_FILE).unlink()
    task = read_trained(tmp_path)
    assert task.predict(task.model(Digits().load().test.inputs[:2])).isinf().all()


def test_a_folder_without_a_whole_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"must hold a model of `leaktight train`. It does not: .*No such file"):
        read_trained(tmp_path)
    train_here(training(), tmp_path)
    (tmp_path / MODEL_FILE).write_bytes(b"no tensors")
    with pytest.raises(InvalidValue, match=r"must hold a model of `leaktight train`"):
        read_trained(tmp_path)
    (tmp_path / MODEL_FILE).write_bytes(safetensors.torch.save({"head.bias": torch.zeros(10)}))
    with pytest.raises(InvalidValue, match=r"must have the parameter `body.linear1.weight`. It does not; train again"):
        read_trained(tmp_path)


def test_other_settings_are_refused() -> None:
    with pytest.raises(InvalidValue, match="has no setting `rounds`"):
        JointTraining.model_validate({**training().to_dict(), "rounds": 3})
