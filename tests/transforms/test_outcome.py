"""Outcomes: all that a policy can do, how likely each is, and that drawing from them is applying the policy."""

from __future__ import annotations

import collections

import pytest
import torch
from torch import Tensor

from leaktight.core.channel import MOST_OUTCOMES, Outcome
from leaktight.core.draws import SeededDraws
from leaktight.core.errors import Refusal
from leaktight.core.random import stream
from leaktight.transforms import PUBLISHED, Policy, outcomes
from leaktight.transforms.outcome import add_mirror
from leaktight.transforms.policy import Probability

SHAPE = (3, 16, 16)


def image(channels: int = 3) -> Tensor:
    return torch.rand(1, channels, 16, 16, generator=stream(0, "image"))


def probabilities_of(found: tuple[Outcome, ...]) -> dict[str, float]:
    return {one.name: pytest.approx(one.weight) for one in found}


def test_branches_and_signs_by_hand() -> None:
    assert probabilities_of(outcomes(Policy.of("3-0+9"), SHAPE)) == {"9": 0.5, "3+ 0": 0.25, "3- 0": 0.25}
    assert probabilities_of(outcomes(Policy.of("18-18"), SHAPE)) == dict.fromkeys(
        ("18+ 18+", "18+ 18-", "18- 18+", "18- 18-"), 0.25
    )
    assert outcomes(Policy.of("3-0+9"), SHAPE)[0].name == "9", "the most likely comes first"


def test_what_does_the_same_is_one_outcome() -> None:
    assert probabilities_of(outcomes(Policy.of("9+16+30-28+39-46"), SHAPE)) == {"9": 1.0}
    assert probabilities_of(outcomes(Policy.of("28+39"), SHAPE)) == {"as it is": 1.0}
    assert probabilities_of(outcomes(Policy.of("42+48"), SHAPE)) == {"24+": 0.5, "24-": 0.5}


def test_colour_does_nothing_to_grey_images() -> None:
    assert probabilities_of(outcomes(Policy.of("12-0"), (1, 8, 8))) == {"0": 1.0}
    assert probabilities_of(outcomes(Policy.of("12-0"), (3, 8, 8))) == {"12+ 0": 0.5, "12- 0": 0.5}


def test_listed_functions_may_be_left_out_each_with_its_own_probability() -> None:
    found = outcomes(Policy.of("0-3"), SHAPE, "listed")
    assert probabilities_of(found) == {
        "as it is": 0.9 * 0.7,
        "0": 0.1 * 0.7,
        "3+": 0.9 * 0.15,
        "3-": 0.9 * 0.15,
        "0 3+": 0.1 * 0.15,
        "0 3-": 0.1 * 0.15,
    }
    assert probabilities_of(outcomes(Policy.of("29"), SHAPE, "listed")) == {"as it is": 1.0}


@pytest.mark.parametrize("probability", ["always", "listed"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("policy", [*PUBLISHED.values(), Policy.of("9-8-20"), Policy.of("37-0-11+27")], ids=str)
def test_applying_the_policy_is_drawing_an_outcome(policy: Policy, channels: int, probability: Probability) -> None:
    count, found = 3000, outcomes(policy, (channels, 16, 16), probability)
    if len(found) == MOST_OUTCOMES:
        pytest.skip("some outcomes are left out")
    assert sum(one.weight for one in found) == pytest.approx(1)

    def key(one: Tensor) -> tuple[int, ...]:
        return tuple((one * 255).round().int().flatten().tolist())

    weights: dict[tuple[int, ...], float] = collections.defaultdict(float)
    for one in found:
        weights[key(one.change(image(channels)))] += one.weight
    drawn = collections.Counter(
        map(key, policy.apply(image(channels).expand(count, -1, -1, -1), SeededDraws(stream(1)), probability))
    )
    assert set(drawn) <= set(weights)
    for made, weight in weights.items():
        assert abs(drawn[made] - count * weight) <= 5 * (count * weight * (1 - weight)) ** 0.5 + 1e-9


def test_of_too_many_the_most_likely_are_told() -> None:
    found = outcomes(Policy.of("3-1-7-18+0"), SHAPE)
    assert len(found) == 17
    many = outcomes(Policy.of("3-1-7-18-13-4-12+0"), SHAPE)
    assert len(many) == MOST_OUTCOMES
    assert (many[0].name, many[0].weight) == ("0", 0.5)
    assert sum(one.weight for one in many) == pytest.approx(0.5 + 63 / 256)
    assert [one.weight for one in many] == sorted((one.weight for one in many), reverse=True)


def test_outcomes_lead_back_to_the_pixels() -> None:
    for one in outcomes(PUBLISHED["ats2021-resnet20-cifar100"], SHAPE):
        pixels = image().requires_grad_(True)
        changed = one.change(pixels)
        assert changed.shape == pixels.shape
        assert changed.min() >= 0
        assert changed.max() <= 1
        (slope,) = torch.autograd.grad(changed.sum(), pixels)
        assert slope.abs().sum() > 0


def test_a_mirror_before_everything() -> None:
    policy = Policy.of("3-0")
    found = add_mirror(outcomes(policy, SHAPE))
    assert probabilities_of(found) == dict.fromkeys(("3+ 0", "mirrored 3+ 0", "3- 0", "mirrored 3- 0"), 0.25)
    for plain, other in zip(found[::2], found[1::2], strict=True):
        assert torch.equal(other.change(image()), plain.change(image().flip(-1)))
    assert len(add_mirror(outcomes(Policy.of("3-1-7-18-13-4-12"), SHAPE))) == MOST_OUTCOMES


def test_what_is_no_image_is_refused() -> None:
    with pytest.raises(
        Refusal, match=r"A transformation needs images of 1 or 3 channels\. Got examples of shape \(64,\) instead\."
    ):
        outcomes(Policy.of("28"), (64,))
