"""The last rounds of a training run: whose models they are, and the mean of their accuracies."""

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.scenario import Observation
from leaktight.core.threat import ThreatModel
from leaktight.data import Digits
from leaktight.learning import FedAvg, Federated, FedSGD, standalone
from leaktight.models import MLP
from leaktight.statistics import unpack


def scenario(**settings) -> Federated:
    common = {"data": Digits(), "model": MLP(hidden=(8,)), "participants": 2, "protocol": FedAvg(local_steps=2)}
    return Federated(**{**common, **settings})


@pytest.fixture(scope="module")
def singles():
    """Accuracy after two, three and four rounds, each by a training run that ends there."""
    return [scenario(rounds=rounds).train(Undefended(), 0).utility[0] for rounds in (2, 3, 4)]


def test_the_utility_is_the_mean_over_the_last_rounds(singles):
    [reading] = scenario(rounds=4, averaged=3).train(Undefended(), 0).utility
    assert reading.value == pytest.approx(sum(single.value for single in singles) / 3)
    hits = torch.stack([unpack(single.outcomes).groups[0] for single in singles])
    shares = unpack(reading.outcomes)
    assert shares.kind == "shares"
    torch.testing.assert_close(shares.groups[0], hits.mean(0), atol=0.002, rtol=0)
    assert reading.low < reading.value < reading.high


def test_one_round_is_as_it_was(singles):
    assert scenario(rounds=4).train(Undefended(), 0).utility == (singles[-1],)
    assert "averaged" not in scenario().to_dict()


def test_fewer_rounds_than_asked_for_are_all_that_count():
    [reading] = scenario(rounds=2, averaged=5).train(Undefended(), 0).utility
    single = scenario(rounds=1).train(Undefended(), 0).utility[0], scenario(rounds=2).train(Undefended(), 0).utility[0]
    assert reading.value == pytest.approx(sum(one.value for one in single) / 2)


def test_who_trains_alone_is_averaged_alike():
    federation = scenario(rounds=3, participants=1, averaged=2)
    [[reading]] = standalone(federation, seed=0)
    assert reading == federation.train(Undefended(), 0).utility[0].without_outcomes()


def test_a_network_trained_by_updates_is_observed_by_the_gradient_of_one_batch():
    made = scenario(rounds=2, observed=FedSGD())
    training = made.train(Undefended(), 0)
    end = training.snapshots["end"].parameters
    plain = scenario(rounds=2).train(Undefended(), 0).snapshots["end"].parameters
    assert all(torch.equal(end[name], plain[name]) for name in end)
    run = made.observe(training, Undefended(), Observation("end", batch_size=3, victims=2, seed=0))
    exchanges = ThreatModel().view(run).exchanges()
    assert {str(exchange.sent.kind) for exchange in exchanges} == {"gradient"}
    assert all("local_steps" not in exchange.sent.facts for exchange in exchanges)
    assert torch.equal(exchanges[0].parameters["head.bias"], end["head.bias"])
    assert "observed" not in scenario().to_dict()


def test_rounds_of_the_training_run_cannot_be_shown_under_another_protocol():
    made = scenario(rounds=2, moments=1, observed=FedSGD())
    with pytest.raises(InvalidValue, match="Leave out `observed`, or name another stage"):
        made.check((), ("training",), 2, 0)
