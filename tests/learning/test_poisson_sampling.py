"""Poisson sampling: how often each example is in, and that none knows of another."""

import dataclasses

import pytest
import torch
from scipy.stats import chi2, kstest

from leaktight.core.defence import Chain, Undefended
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.sampling import KnownBatch, Poisson
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise, Transformation
from leaktight.learning import FedAvg, Federated, FedSGD
from leaktight.learning.client import draw_poisson
from leaktight.learning.gradient import gradient
from leaktight.learning.schedule import ByProperty
from leaktight.models import MLP

COUNT, SIZE, DRAWS = 40, 6, 6000


@pytest.fixture(scope="module")
def membership() -> torch.Tensor:
    """Return one row for each batch, with 1 where an example is in it."""
    local = Local("client-0", seed=3)
    rows = torch.zeros(DRAWS, COUNT, dtype=torch.float64)
    for number in range(DRAWS):
        if number % 50 == 0:
            local.begin(number)
        rows[number, draw_poisson(COUNT, SIZE, local)] = 1
    return rows


def test_every_example_is_in_as_often_as_the_rate_says(membership):
    inside = membership.sum(0)
    expected = torch.full((COUNT,), DRAWS * SIZE / COUNT, dtype=torch.float64)
    variance = DRAWS * (SIZE / COUNT) * (1 - SIZE / COUNT)
    assert 1e-4 < chi2.sf(float(((inside - expected) ** 2 / variance).sum()), COUNT) < 1 - 1e-4
    assert ((inside - expected).abs() < 5 * variance**0.5).all()


def test_sizes_are_binomial_and_so_some_batches_are_empty_or_large(membership):
    sizes = membership.sum(1)
    rate = SIZE / COUNT
    assert sizes.mean().item() == pytest.approx(SIZE, abs=5 * (COUNT * rate * (1 - rate) / DRAWS) ** 0.5)
    assert sizes.var().item() == pytest.approx(COUNT * rate * (1 - rate), rel=0.1)
    assert sizes.min() <= 1
    assert sizes.max() >= 13
    assert sum(not len(draw_poisson(4, 1, Local("client-0", seed))) for seed in range(50)) > 5


def test_no_example_tells_of_another_nor_of_the_batch_before(membership):
    standard = (membership - membership.mean(0)) / membership.std(0)
    for other in (standard, standard.roll(1, 0)):
        correlation = (standard.T @ other / DRAWS).flatten()
        if other is standard:
            correlation = (standard.T @ other / DRAWS)[*torch.triu_indices(COUNT, COUNT, offset=1)]
        assert kstest((correlation * DRAWS**0.5).numpy(), "norm").pvalue > 1e-4
        assert correlation.abs().max() < 6 / DRAWS**0.5


def test_draws_follow_from_the_party_the_seed_and_the_round():
    def first(party="client-0", seed=0, round=0):
        local = Local(party, seed)
        local.begin(round)
        return draw_poisson(200, 50, local).tolist()

    assert first() == first()
    assert len({tuple(draw) for draw in (first(), first("client-1"), first(seed=1), first(round=1))}) == 4


def test_who_draws_everything_gets_everything():
    assert draw_poisson(7, 7, Local("client-0", 0)).tolist() == list(range(7))


def scenario(**settings) -> Federated:
    return Federated(**{"data": Digits(), "model": MLP(hidden=(8,)), "rounds": 6, "batch_size": 8, **settings})


def participants(federated: Federated, defence):
    data = federated.data.load()
    return federated.clients(defence.on_agree(federated.task(data, 0)), data, defence, 0)


def ask(client, number=0) -> Message:
    return Message(Kind.PARAMETERS, "server", client.name, number, client.public.public_parameters())


def test_only_a_defence_that_counts_on_it_trains_on_sampled_batches():
    for defence in (DPSGD(), Chain(links=(Undefended(), DPSGD()))):
        sizes = [
            len(batch) for client in participants(scenario(), defence) for n in range(6) for batch in client.batches(n)
        ]
        assert len(set(sizes)) > 3
        assert sum(sizes) / len(sizes) == pytest.approx(8, abs=3)
    for defence in (Undefended(), GaussianNoise()):
        assert {len(batch) for client in participants(scenario(), defence) for batch in client.batches(0)} == {8}


def test_the_real_size_of_a_sampled_batch_does_not_go_out():
    client = participants(scenario(protocol=FedAvg(local_steps=3)), DPSGD())[0]
    answers = [client.answer(ask(client, number)) for number in range(5)]
    assert len({len(answer.used) for answer in answers}) > 1
    assert {(answer.sent.facts["examples"], answer.sent.facts["batch_size"]) for answer in answers} == {(24.0, 8.0)}


def test_each_step_says_how_its_batch_was_chosen():
    client = participants(scenario(), DPSGD())[0]
    client.answer(ask(client))
    assert client.local.sampling == Poisson(8 / len(client.data), 8)
    plain = participants(scenario(), Undefended())[0]
    plain.answer(ask(plain))
    assert isinstance(plain.local.sampling, KnownBatch)
    assert torch.equal(plain.data.take(plain.local.sampling.positions).inputs, plain.batches(0)[0].inputs)


@pytest.mark.parametrize("defence", [DPSGD(), Chain(links=(Transformation(crop_flip=True), DPSGD()))], ids=str)
@pytest.mark.parametrize("protocol", [FedSGD(), FedAvg(local_steps=2)], ids=str)
def test_a_training_with_empty_batches_goes_through(defence, protocol):
    chosen = scenario(batch_size=1, protocol=protocol)
    clients = participants(chosen, defence)
    assert any(not len(batch) for client in clients for number in range(6) for batch in client.batches(number))
    training = chosen.train(defence, 0)
    assert all(torch.isfinite(tensor).all() for tensor in training.snapshots["end"].parameters.values())
    assert training.notes["dp_sgd.sample_rate"] == pytest.approx(1 / min(len(client.data) for client in clients))


def test_an_empty_batch_sends_pure_noise():
    client = participants(scenario(), DPSGD(clip=1.0, multiplier=2.0))[0]
    client.data = client.data.take(torch.tensor([], dtype=torch.long))
    found = gradient(client.task, client.task.model.tensors(), client.data, per_example=True)
    assert all(len(tensor) == 0 for tensor in found.tensors.values())
    mean = gradient(client.task, client.task.model.tensors(), client.data)
    assert all(tensor.abs().sum() == 0 for tensor in mean.tensors.values())
    client.local.begin(0)
    client.local.now.sampling = Poisson(0.1, 8)
    sent = client.defence.on_gradient(found, client.local.scope("defence"))
    noise = torch.cat([tensor.flatten() for tensor in sent.tensors.values()])
    assert noise.std().item() == pytest.approx(2 / 8, rel=0.1)


@pytest.mark.parametrize("rounds", [0, 6])
def test_an_attacked_batch_is_the_grid_s_and_claims_no_amplification(rounds):
    chosen = scenario(rounds=rounds)
    training = chosen.train(DPSGD(), 0)
    run, bare = (chosen.observe(training, d, Observation("end", 3, 8, 0)) for d in (DPSGD(), Undefended()))
    assert [len(ground_truth.raw) for ground_truth in run.truths.values()] == [3] * 8
    for key, ground_truth in run.truths.items():
        assert torch.equal(ground_truth.raw.inputs, bare.truths[key].raw.inputs)
    assert run.notes["dp_sgd.attacked.epsilon"] == pytest.approx(4.3772, abs=1e-3)
    assert run.notes["dp_sgd.attacked.participations"] == 1
    assert ("dp_sgd.epsilon" in run.notes) == bool(rounds)
    if rounds:
        assert run.notes["dp_sgd.epsilon"] == training.notes["dp_sgd.epsilon"]


def test_a_schedule_that_repeats_examples_is_counted_at_what_it_repeats():
    """One of a kind fills batches of 8, so that it moves their sum by eight times the clip."""
    chosen = scenario(rounds=4, participants=1, schedule=ByProperty(every=2))
    data = chosen.data.load()
    properties = torch.zeros(len(data.train), dtype=torch.long)
    properties[5] = 1
    owned = dataclasses.replace(data.train, properties=properties)
    client = chosen.client(0, chosen.task(data, 0), owned, DPSGD(), 0)
    for number in range(4):
        client.answer(ask(client, number))
    notes = client.local.notes
    assert notes["dp_sgd.repeats"] == 8
    assert notes["dp_sgd.participations"] == 2 * 64
    assert "dp_sgd.sample_rate" not in notes
    assert notes["dp_sgd.epsilon"] > 100


def test_joined_batches_may_all_be_empty():
    nothing = Batch(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
    assert len(Batch.join([nothing, nothing])) == 0
