"""Outcomes: what an attacker can know of a defence that changes examples, and a message made through them."""

import dataclasses
import itertools
import math
from typing import Literal

import pytest
import torch
import torch.nn.functional as F

from leaktight.attacks.outcome import outcomes_of
from leaktight.attacks.replay import Replay
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.threat import ThreatModel
from leaktight.defences import GaussianNoise
from leaktight.transforms.outcome import MOST, Outcome

SHAPE = (1, 6, 6)


def known(weight, change) -> Outcome:
    return Outcome(weight, change, "")


DARK, FLIPPED, SAME = (lambda pixels: 0.5 * pixels), (lambda pixels: pixels.flip(-1)), (lambda pixels: pixels)


class Mirror(Defence):
    """Flips some images."""

    kind: Literal["test_mirror"] = "test_mirror"
    share: float = 0.75

    def outcomes(self, shape):
        return known(self.share, FLIPPED), known(1 - self.share, SAME)


class Dim(Defence):
    """Has so many outcomes, the later the less likely: each darker by one step than the one before."""

    kind: Literal["test_dim"] = "test_dim"
    count: int = 2

    def outcomes(self, shape):
        return tuple(known(2.0**-step, lambda pixels, step=step: pixels / 2**step) for step in range(1, self.count + 1))


def weighted(tensors, weights):
    return {name: sum(w * one[name] for w, one in zip(weights, tensors, strict=True)) for name in tensors[0]}


def assert_close(one, other):
    assert one.keys() == other.keys()
    assert all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)


@pytest.mark.parametrize(
    "defence", [Undefended(), GaussianNoise(std=0.1), Chain(links=()), Chain(links=(Undefended(),))], ids=str
)
def test_who_leaves_examples_alone_has_none(defence):
    assert outcomes_of(defence, SHAPE) == ()


@pytest.mark.parametrize("links", [(Mirror(),), (GaussianNoise(std=1.0), Mirror()), (Mirror(), Undefended())])
def test_one_link_of_a_chain_may_have_them(links):
    found = outcomes_of(Chain(links=links), SHAPE)
    assert [outcome.weight for outcome in found] == [0.75, 0.25]
    images = torch.rand(2, *SHAPE)
    assert torch.equal(found[0].change(images), images.flip(-1))


def test_links_draw_independently_and_change_in_their_order():
    class Edge(Defence):
        kind: Literal["test_edge"] = "test_edge"

        def outcomes(self, shape):
            return (known(1.0, lambda pixels: torch.cat([torch.zeros_like(pixels[..., :1]), pixels[..., 1:]], -1)),)

    images = torch.rand(1, *SHAPE)
    for links, side in (((Mirror(share=1.0), Edge()), 0), ((Edge(), Mirror(share=1.0)), -1)):
        found = outcomes_of(Chain(links=links), SHAPE)
        assert [outcome.weight for outcome in found] == [1.0, 0.0]
        assert not found[0].change(images)[..., side].any()
    both = outcomes_of(Chain(links=(Mirror(), Chain(links=(Dim(),)))), SHAPE)
    assert sorted(outcome.weight for outcome in both) == [0.25 / 4, 0.25 / 2, 0.75 / 4, 0.75 / 2]


def test_of_very_many_the_likeliest_are_kept():
    found = outcomes_of(Chain(links=(Dim(count=20), Dim(count=20))), SHAPE)
    assert len(found) == MOST
    every = sorted((2.0 ** -(one + other) for one in range(1, 21) for other in range(1, 21)), reverse=True)
    assert [outcome.weight for outcome in found] == every[:MOST]


@pytest.fixture
def case(observe):
    """Return a function that makes a replay, the parameters it starts from, and examples."""

    def build(examples=3, **settings):
        run = observe(victims=1, batch=examples // settings.get("steps", 1), **settings)
        [exchange] = ThreatModel().view(run).exchanges()
        inside = run.inside[exchange.sent.key]
        targets = F.one_hot(inside.used.labels, 4).float()
        return Replay.of(run.public, exchange.sent), exchange.parameters, inside.used.inputs, targets

    return build


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("change", [DARK, FLIPPED])
def test_through_one_outcome_the_message_is_that_of_the_changed_examples(case, standardise, steps, change):
    replay, parameters, inputs, targets = case(steps=steps, normalise=standardise)
    through = dataclasses.replace(replay, changes=(known(0.3, change),))
    assert_close(through(parameters, inputs, targets), replay(parameters, change(inputs), targets))


def test_the_expected_gradient_is_the_mean_over_all_draws_of_all_examples(case):
    replay, parameters, inputs, targets = case(examples=3)
    both = known(0.75, FLIPPED), known(0.25, DARK)
    draws = list(itertools.product(both, repeat=3))
    each = [replay(parameters, torch.stack([o.change(x) for o, x in zip(d, inputs, strict=True)]), targets) for d in draws]
    mean = weighted(each, [math.prod(outcome.weight for outcome in draw) for draw in draws])
    assert_close(dataclasses.replace(replay, changes=both)(parameters, inputs, targets), mean)


def test_weights_count_relative_to_their_sum(case):
    replay, parameters, inputs, targets = case()
    few, many = (dataclasses.replace(replay, changes=(known(3 * scale, FLIPPED), known(scale, DARK))) for scale in (0.01, 0.25))
    assert_close(few(parameters, inputs, targets), many(parameters, inputs, targets))


def test_every_local_step_takes_its_expected_gradient(case):
    replay, parameters, inputs, targets = case(examples=4, steps=2, rate=0.5)
    both, weights = (known(0.6, FLIPPED), known(0.4, DARK)), (0.6, 0.4)
    one_step = dataclasses.replace(replay, local_steps=1)
    current = dict(parameters)
    for part, wanted in zip(inputs.chunk(2), targets.chunk(2), strict=True):
        moves = weighted([one_step(current, outcome.change(part), wanted) for outcome in both], weights)
        current = {name: current[name] + moves[name] for name in current}
    moved = {name: current[name] - parameters[name] for name in current}
    assert_close(dataclasses.replace(replay, changes=both)(parameters, inputs, targets), moved)


def test_changes_see_pixels_cut_to_the_box_and_candidates_outside_still_have_a_slope(case):
    replay, parameters, inputs, targets = case(examples=1)
    seen = []
    change = known(1.0, lambda pixels: seen.append((pixels.min().item(), pixels.max().item())) or pixels)
    through = dataclasses.replace(replay, changes=(change,))
    wide = (4 * inputs - 2).requires_grad_(True)
    found = through(parameters, wide, targets)
    assert seen == [(0.0, 1.0)]
    assert_close(found, replay(parameters, wide.detach().clamp(0, 1), targets))
    [slope] = torch.autograd.grad(found["body.1.weight"].square().sum(), wide)
    assert (slope != 0).all()
