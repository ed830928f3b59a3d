"""From each example's gradient to the mean, and from the model's names to those on the wire."""

from __future__ import annotations

import pytest
import torch

from leaktight.channels.clip import Clip
from leaktight.channels.gradient import outward, push_examples
from leaktight.channels.largest import KeepLargest
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Belief, Noise
from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream

EACH = {
    "weight": torch.randn(5, 3, 2, generator=stream(0, "each")),
    "bias": torch.randn(5, 3, generator=stream(1, "each")),
}


def test_without_stages_it_is_the_mean() -> None:
    belief = push_examples((), EACH)
    assert torch.allclose(belief.means["weight"], EACH["weight"].mean(0))
    assert belief.examples == 5
    assert belief.noise_of("weight").is_none


def test_each_example_is_clipped_by_itself() -> None:
    norms = (EACH["weight"].flatten(1).square().sum(1) + EACH["bias"].square().sum(1)).sqrt()
    wanted = (EACH["bias"] * (0.5 / norms).clamp(max=1)[:, None]).mean(0)
    assert torch.allclose(push_examples((Clip(0.5),), EACH).means["bias"], wanted)


def test_it_can_be_mapped_and_differentiated_inside_a_search() -> None:
    """As a search does it: for many candidates at once, each with examples of its own."""

    def total(weights: torch.Tensor) -> torch.Tensor:
        return push_examples((Clip(0.5),), {"weight": weights}).means["weight"].square().sum()

    candidates = torch.randn(4, 5, 3, generator=stream(2, "candidates"))
    slopes, values = torch.func.vmap(torch.func.grad_and_value(total))(candidates)
    assert torch.allclose(values, torch.stack([total(candidate) for candidate in candidates]))
    assert slopes.isfinite().all()


def test_noise_on_each_example_is_less_on_the_mean() -> None:
    noise = push_examples((AddNoise(std=3.0, laplace=2.0),), EACH).noise_of("bias")
    assert torch.allclose(torch.as_tensor(noise.variance), torch.full((3,), (9 + 8) / 5))


def test_a_mask_on_single_examples_cannot_be_stated() -> None:
    with pytest.raises(InvalidValue, match="A stage on single examples must scale them or add independent noise"):
        push_examples((KeepLargest(lambda entries: 1),), EACH)


def test_private_parameters_stay_home() -> None:
    belief = Belief(
        {"head.public.bias": torch.zeros(2), "head.private.bias": torch.zeros(3)}, {"head.public.bias": Noise(2.0)}
    )
    masked = KeepLargest(lambda entries: 3).push(belief)
    found = outward(masked, lambda name: None if "private" in name else name.replace("public.", ""))
    assert list(found.means) == ["head.bias"]
    assert found.masks["head.bias"].group == ("head.bias",)
    assert found.masks["head.bias"].ranked == Noise(2.0)
    assert found.masks["head.bias"].count == 0
