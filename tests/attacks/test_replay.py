"""Replay: what is known of a message at the true examples agrees with what real participants send."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from leaktight.attacks.replay import FEATURE_GRADIENT, SURROGATE, Replay
from leaktight.channels import deviations, standardise
from leaktight.core.channel import Noise
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import DPSGD, GaussianNoise, LocalDP
from leaktight.learning import Adam, Sgd
from leaktight.learning.client import Client
from leaktight.learning.protocol import Server

VIEW = ThreatModel(knows=frozenset(Knows))


def known(run, number=0, **changes):
    """Return what is known of a message at its true examples, and the message."""
    view = VIEW.view(run)
    exchange = view.exchanges()[number]
    ground_truth = run.truths[exchange.sent.key]
    replay = dataclasses.replace(
        Replay.of(view.task, exchange.sent), channel=view.defence.channel(view.task), **changes
    )
    return (
        replay,
        (exchange.parameters, ground_truth.used.inputs, F.one_hot(ground_truth.used.labels, 4).float()),
        exchange.sent.tensors,
    )


def close(belief, sent, tolerance=1e-6) -> bool:
    return all(torch.allclose(belief.means[name], tensor, atol=tolerance) for name, tensor in sent.items())


@pytest.mark.parametrize(
    "optimiser", [Sgd(learning_rate=0.3), Sgd(learning_rate=0.1, momentum=0.9), Adam(learning_rate=0.05)], ids=str
)
@pytest.mark.parametrize("batch", [1, 3])
def test_an_update_is_replayed_step_by_step(observe, optimiser, batch):
    replay, arguments, sent = known(observe(victims=1, batch=batch, steps=4, optimiser=optimiser))
    belief = replay(*arguments)
    assert close(belief, sent, 1e-5)
    assert belief.examples == 4 * batch
    assert all(belief.noise_of(name).is_none for name in sent)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_noise_of_each_step_has_its_variance_in_the_update(observe, momentum):
    """Two hundred participants with the same examples and streams of their own."""
    std, optimiser = 0.02, Sgd(learning_rate=0.05, momentum=momentum)
    run = observe(victims=1, steps=3, optimiser=optimiser, defence=GaussianNoise(std=std, each="step"))
    replay, arguments, _ = known(run)
    belief = replay(*arguments)
    [ground_truth] = run.truths.values()
    ask = Server(run.public.public_parameters()).ask("client-0", 0)
    drawn = []
    for seed in range(200):
        client = Client(
            "client-0",
            run.public,
            ground_truth.raw,
            run.defence,
            Local("client-0", seed=seed),
            batch_size=1,
            local_steps=3,
            optimiser=optimiser,
            shares=Kind.UPDATE,
        )
        found = client.answer(ask)
        replayed = replay(arguments[0], found.used.inputs, F.one_hot(found.used.labels, 4).float())
        residuals = standardise(replayed, found.sent.tensors, stream(seed))
        drawn.append(torch.cat([tensor.flatten() for tensor in residuals.values()]))
    whole = torch.stack(drawn)
    # Over 200 draws of about 1,000 entries; what noise of earlier steps does to later gradients is left out, and small
    # here.
    assert whole.mean().abs() < 0.01
    assert whole.square().mean().item() == pytest.approx(1.0, rel=0.03)
    weights = [0.05 * sum(momentum**lag for lag in range(end)) for end in (3, 2, 1)]
    assert belief.noise_of("head.bias").variance == pytest.approx(sum(weight**2 for weight in weights) * std**2)


def test_dp_sgd_clips_each_example_inside_the_candidate(observe):
    run = observe(victims=1, batch=3, defence=DPSGD(clip=0.2, multiplier=0.0))
    replay, arguments, sent = known(run)
    belief = replay(*arguments)
    assert close(belief, sent)
    parameters, inputs, targets = arguments
    alone = []
    for row in range(3):
        one = dataclasses.replace(replay, channel=VIEW.view(observe()).defence.channel(run.public), examples=1)
        means = one(parameters, inputs[row : row + 1], targets[row : row + 1]).means
        size = torch.cat([tensor.flatten() for tensor in means.values()]).norm()
        assert size > 0.2
        alone.append({name: tensor * 0.2 / size for name, tensor in means.items()})
    mean = {name: torch.stack([each[name] for each in alone]).mean(0) for name in sent}
    assert close(belief, mean)


@pytest.mark.parametrize("defence", [DPSGD(clip=0.5, multiplier=0.3), LocalDP(clip=0.5, multiplier=0.3)], ids=str)
def test_messages_deviate_as_the_channel_says(observe, defence):
    run = observe(victims=20, batch=2, defence=defence)
    found = []
    for number in range(20):
        replay, arguments, sent = known(run, number)
        found.append(torch.cat([t.flatten() for t in standardise(replay(*arguments), sent, stream(number)).values()]))
    assert torch.cat(found).square().mean().item() == pytest.approx(1.0, rel=0.05)


def test_tiny_steps_at_the_true_point_are_the_update(observe):
    """With a tiny rate all gradients of the way are alike, so that one gradient anywhere on it gives the whole update."""
    run = observe(victims=1, batch=2, steps=3, rate=1e-3)
    replay, arguments, sent = known(run, update="surrogate")
    for place in (-20.0, 0.0, 20.0):
        belief = replay(*arguments, {SURROGATE: torch.tensor(place)}, None, sent)
        assert all((belief.means[name] - tensor).norm() < 0.005 * tensor.norm() for name, tensor in sent.items())


def test_a_point_on_the_way_is_closer_than_its_start(observe):
    """Three steps over the same example: what the first is short of, seen from the middle, the last has more."""
    image = torch.rand(1, 1, 6, 6, generator=stream(0)).repeat(3, 1, 1, 1)
    run = observe(victims=1, images=image, labels=[1, 1, 1], steps=3, rate=0.3)
    replay, arguments, sent = known(run, update="surrogate")
    beliefs = [replay(*arguments, {SURROGATE: torch.tensor(place)}, None, sent) for place in (-20.0, -0.7)]
    start, middle = (sum((b.means[n] - sent[n]).square().sum() for n in sent).item() for b in beliefs)
    assert middle < 0.5 * start


def test_a_surrogate_point_has_the_noise_of_all_steps(observe):
    run = observe(victims=1, steps=3, optimiser=Sgd(learning_rate=0.1), defence=GaussianNoise(std=0.2, each="step"))
    replay, arguments, sent = known(run, update="surrogate")
    belief = replay(*arguments, {SURROGATE: torch.tensor(0.0)}, None, sent)
    assert belief.noise_of("head.bias").variance == pytest.approx(3 * 0.1**2 * 0.2**2)


def test_a_free_loss_gives_the_body_s_gradient_from_that_at_the_features(observe):
    run = observe(victims=1, batch=2)
    replay, arguments, sent = known(run, loss="free", names=("body.1.weight", "body.1.bias"))
    parameters, inputs, targets = arguments
    task = run.public
    features = task.model.features(inputs).detach().requires_grad_(True)
    loss = task.loss(F.linear(features, parameters["head.weight"], parameters["head.bias"]), targets).sum()
    [slope] = torch.autograd.grad(loss, features)
    belief = replay(*arguments, {FEATURE_GRADIENT: slope.flatten(1)})
    assert set(belief.means) == {"body.1.weight", "body.1.bias"}
    assert close(belief, {name: sent[name] for name in belief.means})


def test_only_what_was_sent_is_known_and_nothing_else_is_exact(observe):
    replay, arguments, sent = known(observe(victims=1))
    belief = dataclasses.replace(replay, names=("head.bias",))(*arguments)
    assert set(belief.means) == {"head.bias"}
    assert belief.noise_of("head.bias") == Noise()
    assert float(deviations(belief, {"head.bias": sent["head.bias"]})["head.bias"].max()) < 1e-6


def test_an_update_without_its_steps_is_refused(observe):
    run = observe(victims=1, steps=2)
    [exchange] = ThreatModel(knows=frozenset()).view(run).exchanges()
    with pytest.raises(Refusal, match="Add `local_steps` to `knows`"):
        Replay.of(run.public, exchange.sent)
