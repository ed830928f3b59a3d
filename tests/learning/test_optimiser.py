from __future__ import annotations

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.message import Kind
from leaktight.core.scenario import Observation
from leaktight.data import Digits
from leaktight.learning import Adam, DecayedSgd, FedAvg, Federated, FedSGD, Sgd
from leaktight.learning.protocol import Server
from leaktight.models import MLP


@pytest.mark.parametrize(("round", "rate"), [(0, 0.4), (1, 0.4), (2, 0.2), (4, 0.2), (5, 0.1), (99, 0.1)])
def test_the_step_size_is_halved_after_the_given_rounds(round: int, rate: float) -> None:
    decayed = DecayedSgd(learning_rate=0.4, momentum=0.9, rounds=(2, 5))
    assert decayed.at(round) == Sgd(learning_rate=rate, momentum=0.9)


def test_others_are_the_same_in_every_round() -> None:
    for optimiser in (Sgd(), Adam()):
        assert optimiser.at(1000) is optimiser


def test_alone_it_is_what_it_is_at_the_start() -> None:
    leaf = torch.zeros(1, requires_grad=True)
    [group] = DecayedSgd(learning_rate=0.4, rounds=(1,)).over([leaf]).param_groups
    assert group["lr"] == 0.4


def test_a_participant_takes_the_steps_of_its_round_and_says_so() -> None:
    """Two rounds of one step each: the second update is half as long as at a constant rate, from the same parameters."""

    def second(optimiser: Sgd | DecayedSgd) -> tuple[dict[str, torch.Tensor], float]:
        protocol = FedAvg(optimiser=optimiser, local_steps=1)
        scenario = Federated(data=Digits(), model=MLP(), participants=2, protocol=protocol, rounds=1)
        run = scenario.observe(scenario.train(Undefended(), 0), Undefended(), Observation("end", 4, 1, 0))
        return dict(run.transcript[-1].tensors), run.transcript[-1].facts["learning_rate"]

    constant, rate = second(Sgd(learning_rate=0.2))
    halved, half = second(DecayedSgd(learning_rate=0.2, rounds=(1,)))
    assert (rate, half) == (0.2, 0.1)
    for name, tensor in constant.items():
        torch.testing.assert_close(halved[name], tensor / 2, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("stage", "rate"), [("initial", 0.4), ("early", 0.2), ("end", 0.1)])
@pytest.mark.parametrize("aggregation", ["mean", "secure"])
def test_what_is_observed_at_a_stage_has_the_step_size_of_that_stage(stage: str, rate: float, aggregation: str) -> None:
    """Messages are numbered on from the last round at every stage, so that the numbers say nothing about the rate."""
    protocol = FedAvg(optimiser=DecayedSgd(learning_rate=0.4, rounds=(1, 2)), local_steps=1, aggregation=aggregation)
    scenario = Federated(data=Digits(), model=MLP(), participants=2, protocol=protocol, rounds=3)
    assert scenario.rounds_before("early") == 1
    run = scenario.observe(scenario.train(Undefended(), 0), Undefended(), Observation(stage, 4, 4, 0))
    sent = [message for message in run.transcript if message.kind is Kind.UPDATE]
    assert len(sent) == 4
    assert min(message.round for message in sent) == 3
    assert {ground_truth.clean.facts["learning_rate"] for ground_truth in run.truths.values()} == {rate}


def test_the_server_s_steps_become_shorter_too() -> None:
    """The same gradient in three rounds: each step is half as long as the one before."""
    server = Server({"a": torch.zeros(1)}, DecayedSgd(learning_rate=0.4, rounds=(1, 2)))
    places = []
    for number in range(3):
        server.follow({"a": torch.ones(1)}, number)
        places.append(-server.parameters["a"].item())
    assert places == pytest.approx([0.4, 0.6, 0.7])


def test_under_fedsgd_a_training_decays() -> None:
    """A decay that comes after the last round changes nothing, an earlier one does."""
    scenario = Federated(data=Digits(), model=MLP(), participants=2, rounds=3)

    def end(optimiser: Sgd | DecayedSgd) -> dict[str, torch.Tensor]:
        return dict(
            scenario.model_copy(update={"protocol": FedSGD(optimiser=optimiser)})
            .train(Undefended(), 0)
            .snapshots["end"]
            .parameters
        )

    constant, decayed = end(Sgd(learning_rate=0.4)), end(DecayedSgd(learning_rate=0.4, rounds=(1, 2)))
    late = end(DecayedSgd(learning_rate=0.4, rounds=(3,)))
    assert all(torch.equal(constant[name], late[name]) for name in constant)
    assert not torch.allclose(constant["head.weight"], decayed["head.weight"])


def test_the_factor_must_shorten() -> None:
    with pytest.raises(InvalidValue, match="The `factor` of decayed_sgd must be below 1"):
        DecayedSgd(factor=1.0)


def test_weights_decay_as_torch_s_and_whoever_knows_the_protocol_knows() -> None:
    decayed = DecayedSgd(learning_rate=0.4, rounds=(2,), weight_decay=0.5)
    assert decayed.at(2) == Sgd(learning_rate=0.2, weight_decay=0.5)
    leaf = torch.ones(1, requires_grad=True)
    leaf.grad = torch.zeros(1)
    Sgd(learning_rate=0.2, weight_decay=0.5).over([leaf]).step()
    assert leaf.item() == pytest.approx(0.9)
    assert Sgd(weight_decay=0.5).facts()["weight_decay"] == 0.5
    assert "weight_decay" not in Sgd().facts()
    assert "weight_decay" not in Sgd().to_dict()
