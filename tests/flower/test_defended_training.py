"""A person's own training step under defences that need the model, the examples or each gradient."""

import pytest
import torch
from flwr.app import ArrayRecord
from opacus.accountants import RDPAccountant
from torch import nn

from leaktight.core.budget import budgets_of
from leaktight.core.defence import Chain
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.task import Batch
from leaktight.defences import DPSGD, ClassKeys, GaussianNoise, LayerGuard, Polarization, TopK, Transformation
from leaktight.flower import defend_training, notes_of
from leaktight.learning import Adam, Sgd
from leaktight.learning.gradient import gradient

INPUTS = torch.rand(6, 1, 4, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3))


def trained(context, defence, steps=2, net=None, rate=0.1):
    """Train as a person would, and return the arrays of the reply and the network."""
    net = net or network()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    own = defend_training(defence, net, context, LABELS, (1, 4, 4))
    for _ in range(steps):
        optimizer.zero_grad()
        own.backward(INPUTS, LABELS)
        optimizer.step()
    return own.arrays(), net


def plain(steps=2, rate=0.1):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(INPUTS), LABELS).backward()
        optimizer.step()
    return net.state_dict()


def close(record: ArrayRecord, state, tolerance=1e-5):
    sent = record.to_torch_state_dict()
    return list(sent) == list(state) and all(torch.allclose(sent[name], state[name], atol=tolerance) for name in state)


def test_without_strength_it_is_the_persons_own_training(by_hand):
    arrays, _ = trained(by_hand.context(), GaussianNoise(std=0, each="step"))
    assert close(arrays, plain())


def test_the_private_head_of_polarization_stays_and_goes_on(by_hand):
    context = by_hand.context()
    arrays, _ = trained(context, Polarization(alpha2=0.5, bits=4))
    assert list(arrays) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert not close(arrays, plain(), 1e-3)
    first = defend_training(Polarization(alpha2=0.5, bits=4), network(), context, LABELS, (1, 4, 4)).local.memory[
        "private"
    ]
    trained(context, Polarization(alpha2=0.5, bits=4))
    second = defend_training(Polarization(alpha2=0.5, bits=4), network(), context, LABELS, (1, 4, 4)).local.memory[
        "private"
    ]
    assert first.keys() == second.keys() == {"head.private.weight", "head.private.bias"}
    assert not torch.equal(first["head.private.weight"], second["head.private.weight"])


@pytest.mark.parametrize("optimiser", [Sgd(learning_rate=0.2, momentum=0.5), Adam(learning_rate=0.01)], ids=str)
def test_the_private_head_follows_the_rule_of_every_participant(by_hand, optimiser):
    """As in a client of ours: the settings of one optimiser, moments that start from zero in every message."""
    defence, net = Polarization(alpha2=0.5, bits=4), network()
    own = defend_training(defence, net, by_hand.context(), LABELS, (1, 4, 4), optimiser=optimiser)
    before = {name: own.task.model.tensors()[name].clone() for name in ("head.private.weight", "head.private.bias")}
    public = {own.task.wire(name): t for name, t in own.task.model.tensors().items() if own.task.wire(name)}
    leaves = {name: tensor.clone().requires_grad_(True) for name, tensor in before.items()}
    steps = optimiser.at(0).over(leaves.values())
    for _ in range(3):
        own.backward(INPUTS, LABELS)
        parameters = own.task.model_parameters(public, {name: leaf.detach() for name, leaf in leaves.items()})
        found = gradient(own.task, parameters, Batch(INPUTS, LABELS)).tensors
        for name, leaf in leaves.items():
            leaf.grad = found[name].detach()
        steps.step()
    for name, leaf in leaves.items():
        torch.testing.assert_close(own.local.memory["private"][name], leaf.detach())
        assert not torch.equal(leaf, before[name])


def test_the_budget_of_dp_sgd_adds_up_over_messages(by_hand):
    context, defence = by_hand.context(), DPSGD(clip=1.0, multiplier=1.0)
    spent = []
    for _ in range(3):
        trained(context, defence)
        spent.append(notes_of(context, defence)["dp_sgd.epsilon"])
    assert spent[0] < spent[1] < spent[2]
    alone = by_hand.context()
    trained(alone, defence, steps=6)
    assert notes_of(alone, defence)["dp_sgd.epsilon"] == pytest.approx(spent[2])


def spent(context, steps=4, sizes=(6,), **settings):
    """Return what some steps cost, in batches of these sizes."""
    defence, net = DPSGD(clip=1.0, multiplier=2.0), network()
    own = defend_training(defence, net, context, LABELS, (1, 4, 4), **settings)
    for step in range(steps):
        size = sizes[step % len(sizes)]
        own.backward(INPUTS[:size], LABELS[:size])
    gradients = {name: parameter.grad for name, parameter in net.named_parameters()}
    own.arrays()
    return notes_of(context, defence), gradients


def test_without_a_word_about_the_loader_every_step_counts(by_hand):
    unknown, _ = spent(by_hand.context(), sizes=(2,))
    assert unknown["dp_sgd.participations"] == 4
    passes, _ = spent(by_hand.context(), sizes=(2,), sampling="passes")
    assert passes["dp_sgd.participations"] == 2  # three batches of two are a pass over six
    sampled, _ = spent(by_hand.context(), sizes=(2,), sampling="poisson", batch_size=2)
    assert sampled["dp_sgd.sample_rate"] == pytest.approx(1 / 3)
    opacus = RDPAccountant()
    for _ in range(4):
        opacus.step(noise_multiplier=2.0, sample_rate=1 / 3)
    assert sampled["dp_sgd.epsilon"] == pytest.approx(opacus.get_epsilon(1e-5))
    assert sampled["dp_sgd.epsilon"] < passes["dp_sgd.epsilon"] < unknown["dp_sgd.epsilon"]


def test_every_message_begins_a_pass_of_its_own(by_hand):
    context = by_hand.context()
    for number in (1, 2, 3):
        notes, _ = spent(context, steps=1, sizes=(2,), sampling="passes")
        assert notes["dp_sgd.participations"] == number


def test_sampled_batches_may_be_empty_and_are_divided_by_the_expected_size(by_hand):
    notes, gradients = spent(by_hand.context(), steps=1, sizes=(0,), sampling="poisson", batch_size=4)
    noise = torch.cat([gradient.flatten() for gradient in gradients.values()])
    assert float(noise.std()) == pytest.approx(2.0 / 4, rel=0.2)
    assert notes["dp_sgd.epsilon"] > 0
    with pytest.raises(InvalidValue, match="must be part of the examples that it owns"):
        spent(by_hand.context(), steps=1, sizes=(0,))


def test_a_budget_on_a_node_can_be_said_in_full(by_hand):
    notes, _ = spent(by_hand.context(), sampling="passes")
    [budget] = budgets_of(notes)
    assert "at delta 1e-05 (upper bound; no amplification by sampling: an example counts 4 times)" in str(budget)


def test_noise_is_never_drawn_twice(by_hand):
    context, defence = by_hand.context(), DPSGD()
    one, other = (trained(context, defence)[0].to_torch_state_dict() for _ in range(2))
    assert not torch.isclose(one["1.weight"], other["1.weight"]).any()


def test_a_chain_goes_through_all_its_hooks(by_hand):
    chain = Chain(links=(Polarization(bits=4), TopK(share=0.1)))
    arrays, _ = trained(by_hand.context(), chain)
    start, sent = network().state_dict(), arrays.to_torch_state_dict()
    moved = sum(int((sent[name] != start[name]).sum()) for name in start)
    assert moved == 17  # of 163 entries a tenth, rounded up


def test_a_guard_withholds_the_layer_that_it_is_told(by_hand):
    guarded, net = trained(by_hand.context(), LayerGuard(layers=("3",)))
    sent, start = guarded.to_torch_state_dict(), network().state_dict()
    assert torch.equal(sent["3.weight"], start["3.weight"])
    assert torch.allclose(sent["1.weight"], net.state_dict()["1.weight"])


def test_examples_are_changed_before_each_step(by_hand):
    arrays, _ = trained(by_hand.context(), Transformation(crop_flip=True), steps=1)
    assert not close(arrays, plain(1), 1e-4)
    both = Chain(links=(Transformation(crop_flip=True), DPSGD()))
    context = by_hand.context()
    trained(context, both, steps=1)
    assert notes_of(context, both)["dp_sgd.epsilon"] > 0


def test_what_would_change_the_public_model_is_refused(by_hand):
    with pytest.raises(InvalidValue, match="changes the public model"):
        defend_training(ClassKeys(), network(), by_hand.context(), LABELS, (1, 4, 4))


def test_a_training_that_goes_around_it_is_not_sent(by_hand):
    own = defend_training(DPSGD(), network(), by_hand.context(), LABELS, (1, 4, 4))
    with pytest.raises(InvalidValue, match="must take its steps by `backward`"):
        own.arrays()


def test_two_trainings_at_once_are_refused(by_hand):
    """What the first one spent would be forgotten, and its noise drawn again."""
    context = by_hand.context()
    first, second = (defend_training(DPSGD(), network(), context, LABELS, (1, 4, 4)) for _ in range(2))
    for own in (first, second):
        own.backward(INPUTS, LABELS)
    second.arrays()
    with pytest.raises(InvalidValue, match="must finish one message under dp_sgd before it begins another"):
        first.arrays()


def test_an_update_that_is_not_finite_is_not_sent(by_hand):
    with pytest.raises(LeaktightError, match="finite"):
        trained(by_hand.context(), GaussianNoise(std=0.1, each="step"), rate=float("inf"))


def test_batch_norm_in_training_mode_is_refused_with_the_fix(by_hand):
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    with pytest.raises(InvalidValue, match="Batch norm `2` in training mode"):
        defend_training(DPSGD(), net, by_hand.context(), LABELS, (1, 4, 4))
    assert net.training
