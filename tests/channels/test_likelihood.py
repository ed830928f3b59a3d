"""The likelihood of a message under every law: by hand, against scipy, and inside the machinery of a search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from leaktight.channels import AddNoise, Clip, Drop, KeepLargest, OnLayers, StatedNoise, negative_log_likelihood
from leaktight.channels.likelihood import UNBOUNDED, bound_of
from leaktight.core.channel import Belief, Mask, Noise, Stage, push_all
from leaktight.core.random import stream
from leaktight.core.torch_private import trace_graph

FLOOR = {"body.weight": 1e-3, "body.scale": 1e-3, "head.bias": 1e-3}
HALF = KeepLargest(lambda entries: entries // 2)
HALF_EACH = KeepLargest(lambda entries: -(-entries // 2), "tensor")
NOISY_HALF = KeepLargest(lambda entries: entries // 2, sent_std=0.1)
ALONG = StatedNoise({"body.weight": Noise(variance=0.01, along=torch.linspace(0.1, 1.2, 12).view(4, 3))})
LAWS: dict[str, tuple[Stage, ...]] = {
    "exact": (),
    "gaussian": (AddNoise(std=0.3),),
    "laplace": (AddNoise(laplace=0.3),),
    "gaussian and laplace": (AddNoise(std=0.2), AddNoise(laplace=0.3)),
    "mask": (HALF,),
    "mask of each tensor": (HALF_EACH,),
    "mask and noise on what is sent": (NOISY_HALF,),
    "noise and mask": (AddNoise(std=0.3), HALF),
    "laplace and mask": (AddNoise(laplace=0.3), HALF),
    "mask and noise": (HALF, AddNoise(std=0.3)),
    "mask and laplace": (HALF_EACH, AddNoise(laplace=0.3)),
    "noise, mask and noise": (AddNoise(std=0.1), HALF, AddNoise(std=0.3)),
    "mask, noise and mask": (HALF, AddNoise(std=0.2), HALF_EACH),
    "two masks": (HALF, HALF_EACH),
    "two masks and noise": (HALF, HALF_EACH, AddNoise(std=0.1)),
    "clip": (Clip(0.5),),
    "noise, clip and noise": (AddNoise(std=0.1), Clip(0.5), AddNoise(laplace=0.1)),
    "mask, clip and noise": (HALF, Clip(0.5), AddNoise(std=0.1)),
    "noise, mask, clip and noise": (AddNoise(std=0.1), HALF, Clip(0.5), AddNoise(std=0.1)),
    "mask and clip": (HALF, Clip(0.5)),
    "some layers": (OnLayers(("head",), (HALF_EACH,)), AddNoise(std=0.1)),
    "layers left out": (HALF, Drop(("head",)), AddNoise(std=0.1)),
    "noise along rows": (ALONG,),
    "noise along rows and everywhere": (ALONG, AddNoise(std=0.1)),
}


def means(point: Tensor) -> dict[str, Tensor]:
    return {"body.weight": point[:12].view(4, 3), "body.scale": point[3] * point[14], "head.bias": point[12:].sin()}


def message(stages: tuple[Stage, ...], dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Return something that may have come under these stages: numbers, and zeros where a mask shows."""
    rng = stream(0, "message")
    belief = push_all(stages, Belief(means(torch.randn(20, generator=rng).to(dtype))))
    sent = {}
    for name, mean in belief.means.items():
        shown = name in belief.masks and belief.noise_of(name).is_none
        kept = mean.abs() >= belief.masks[name].edge if shown else torch.ones_like(mean, dtype=torch.bool)
        sent[name] = torch.where(kept, mean + 0.01 * torch.randn(mean.shape, generator=rng).to(dtype), 0.0)
    return sent


def cost_under(stages: tuple[Stage, ...]) -> Callable[[Tensor, dict[str, Tensor]], Tensor]:
    return lambda point, observed: negative_log_likelihood(push_all(stages, Belief(means(point))), observed, FLOOR)


@pytest.mark.parametrize("stages", LAWS.values(), ids=LAWS)
def test_each_law_can_be_mapped_differentiated_and_traced(stages: tuple[Stage, ...]) -> None:
    cost, sent = cost_under(stages), message(stages)
    points = torch.randn(3, 20, generator=stream(1, "points"))
    observed = {name: torch.stack([tensor, 1.5 * tensor, -tensor]) for name, tensor in sent.items()}
    mapped = torch.func.vmap(torch.func.grad_and_value(cost))

    def plain(points: Tensor, observed: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        slopes, values = mapped(points, observed)
        return values, slopes

    graph = trace_graph(plain, points, observed)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    others = torch.randn(3, 20, generator=stream(2, "points"))
    values, slopes = graph(others, observed)
    wanted = torch.stack(
        [cost(point, {name: t[row] for name, t in observed.items()}) for row, point in enumerate(others)]
    )
    assert torch.allclose(values, wanted, rtol=1e-4, atol=1e-3)
    assert slopes.isfinite().all()
    assert (slopes != 0).any(1).all()


@pytest.mark.parametrize("stages", LAWS.values(), ids=LAWS)
def test_each_law_has_the_slope_of_its_value(stages: tuple[Stage, ...]) -> None:
    cost, sent = cost_under(stages), message(stages, torch.float64)
    point = torch.randn(20, generator=stream(3, "point"), dtype=torch.float64)
    slope = torch.func.grad(cost)(point, sent)
    for direction in torch.randn(4, 20, generator=stream(4, "directions"), dtype=torch.float64):
        step = 1e-6 * direction
        difference = (cost(point + step, sent) - cost(point - step, sent)) / 2e-6
        assert float(slope @ direction) == pytest.approx(float(difference), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("stages", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("size", [0.0, 1e-6, 1e3])
def test_each_law_is_finite_far_from_the_message_and_at_zero(stages: tuple[Stage, ...], size: float) -> None:
    point = (size * torch.randn(20, generator=stream(5, "far"))).requires_grad_(True)
    value = cost_under(stages)(point, message(stages))
    assert value.isfinite()
    assert torch.autograd.grad(value, point)[0].isfinite().all()


def cost(belief: Belief, seen: Tensor, floor: float = 1e-6) -> float:
    return float(negative_log_likelihood(belief, {"weight": seen}, {"weight": floor}))


def test_differences_of_the_cost_are_log_ratios_of_scipy_densities() -> None:
    seen = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    one, other = (torch.tensor(values, dtype=torch.float64) for values in ([0.1, -0.5, 1.0], [0.0, 0.2, 3.0]))
    laws = {
        Noise(variance=0.16): scipy.stats.norm(scale=0.4),
        Noise(laplace=0.4): scipy.stats.laplace(scale=0.4),
        Noise(variance=torch.tensor(0.16, dtype=torch.float64)): scipy.stats.norm(scale=0.4),
    }
    for noise, law in laws.items():
        found = [cost(Belief({"weight": mean}, {"weight": noise}), seen) for mean in (one, other)]
        wanted = [-law.logpdf(seen - mean).sum() for mean in (one, other)]
        assert found[0] - found[1] == pytest.approx(wanted[0] - wanted[1], rel=1e-6)


def test_a_variance_that_depends_on_the_candidate_is_normalised() -> None:
    """A clip shortens noise that was there before, so a longer candidate makes a narrower law."""
    stages = (AddNoise(std=0.5), Clip(1.0))
    seen = torch.tensor([0.6, 0.8], dtype=torch.float64)
    costs, wanted = [], []
    for length in (1.0, 5.0):
        mean = length * torch.tensor([0.6, 0.8], dtype=torch.float64)
        factor = 1 / (length**2 + 2 * 0.25) ** 0.5
        costs.append(cost(push_all(stages, Belief({"weight": mean})), seen))
        wanted.append(-scipy.stats.norm.logpdf(seen, mean * factor, 0.5 * factor).sum())
    assert costs[0] - costs[1] == pytest.approx(wanted[0] - wanted[1], rel=1e-6)


def test_noise_along_rows_against_scipy() -> None:
    rng = stream(6, "rows")
    along, seen, mean = (torch.randn(3, 4, generator=rng, dtype=torch.float64) for _ in range(3))
    found = cost(Belief({"weight": mean}, {"weight": Noise(variance=0.3, along=along)}), seen)
    covariances = [0.3 * np.eye(4) + np.outer(a, a) for a in along.numpy()]
    wanted = [-scipy.stats.multivariate_normal.logpdf(s, m, c) for s, m, c in zip(seen, mean, covariances, strict=True)]
    assert found + 3 * 4 / 2 * np.log(2 * np.pi) == pytest.approx(sum(wanted))


def masked(mean: Tensor, count: int, **more: Noise) -> Belief:
    return Belief({"weight": mean}, masks={"weight": Mask(("weight",), count, **more)})


def test_a_mask_that_shows() -> None:
    seen = torch.tensor([3.0, 0.0, -2.0, 0.0])
    # Sent entries are off by 0.1 and 0.2; of the others one is 0.5 above the bound of 2.
    found = cost(masked(torch.tensor([3.1, 2.5, -1.8, 1.9]), 2), seen, floor=0.1)
    assert found == pytest.approx((0.1**2 + 0.2**2 + 0.5**2) / (2 * 0.1**2), rel=1e-5)


def test_where_fewer_came_than_go_out_the_others_are_zero() -> None:
    seen = torch.tensor([3.0, 0.0, 0.0, 0.0])
    assert cost(masked(torch.tensor([3.0, 0.1, 0.0, 0.0]), 2), seen, floor=0.1) == pytest.approx(0.5)
    assert cost(masked(torch.tensor([3.0, 0.1, 0.0, 0.0]), 1), seen, floor=0.1) == pytest.approx(0.0)


def test_noise_in_what_is_ranked_makes_a_bound_a_probability() -> None:
    seen, mean = torch.tensor([3.0, 0.0, -2.0, 0.0]), torch.tensor([3.1, 2.5, -1.8, 1.9])
    found = cost(masked(mean, 2, ranked=Noise(variance=0.25)), seen)
    law = scipy.stats.norm(scale=0.5)
    sent = -(law.logpdf(0.1) + law.logpdf(0.2) - 2 * law.logpdf(0))
    left = -sum(np.log(law.cdf(2 - m) - law.cdf(-2 - m)) for m in (2.5, 1.9))
    assert found == pytest.approx(sent + left, rel=1e-4)


def test_noise_on_what_is_sent_widens_the_bound() -> None:
    seen = torch.tensor([3.0, 0.0, -2.0, 0.0])
    belief = masked(torch.tensor([3.0, 2.5, -2.0, 1.9]), 2, sent=Noise(variance=0.04))
    assert bound_of(belief, "weight", {"weight": seen}) == pytest.approx(3.0)
    assert cost(belief, seen) == pytest.approx(0.0, abs=1e-6)


def test_a_hidden_mask_is_a_mixture() -> None:
    mean = torch.tensor([3.0, 1.0, -2.0, 0.1], dtype=torch.float64)
    seen = torch.tensor([2.8, 0.2, -2.5, -0.3], dtype=torch.float64)
    belief = AddNoise(std=0.5).push(HALF.push(Belief({"weight": mean})))
    law = scipy.stats.norm(scale=0.5)
    weights = 1 / (1 + np.exp(-(mean.abs().numpy() - 2.0) / (0.05 * 2.0)))
    wanted = -np.log(weights * law.pdf(seen - mean) + (1 - weights) * law.pdf(seen)).sum() + 4 * law.logpdf(0)
    assert cost(belief, seen, floor=1e-9) == pytest.approx(wanted, rel=1e-6)


def test_of_two_masks_only_the_own_tensor_bounds_an_entry() -> None:
    tensors = {"big": torch.tensor([9.0, 8.0, 7.0, 6.0]), "small": torch.tensor([3.0, 2.0, 1.0, 0.5])}
    belief = push_all((KeepLargest(lambda entries: entries // 2), HALF_EACH), Belief(tensors))
    sent = {"big": torch.tensor([9.0, 8.0, 0.0, 0.0]), "small": torch.zeros(4)}
    assert bound_of(belief, "big", sent) == 8.0
    assert bound_of(belief, "small", sent) >= UNBOUNDED
    assert float(negative_log_likelihood(belief, sent, {"big": 1e-3, "small": 1e-3})) == 0.0


def test_tensors_that_did_not_come_are_left_out_and_tell_nothing_of_the_count() -> None:
    tensors = {"body.weight": torch.tensor([9.0, 8.0, 7.0, 6.0]), "head.bias": torch.tensor([3.0, 7.5])}
    belief = push_all((KeepLargest(lambda entries: 4), Drop(("body",))), Belief(tensors))
    assert belief.masks["head.bias"].group == ("head.bias",)
    sent = {"head.bias": torch.tensor([0.0, 7.5])}
    assert float(negative_log_likelihood(belief, sent, FLOOR)) == 0.0


def test_noise_on_another_tensor_says_nothing_about_a_bound() -> None:
    tensors = {"body.weight": torch.tensor([9.0, 8.0, 1.0, 0.0]), "head.bias": torch.tensor([3.0, 7.5])}
    belief = push_all((KeepLargest(lambda entries: 3), OnLayers(("body",), (AddNoise(std=0.1),))), Belief(tensors))
    sent = {"body.weight": torch.tensor([9.1, 8.0, 0.1, -0.2]), "head.bias": torch.tensor([0.0, 7.5])}
    assert bound_of(belief, "head.bias", sent) == 7.5


@pytest.mark.parametrize("stages", LAWS.values(), ids=LAWS)
def test_the_truth_is_likelier_than_another_candidate(stages: tuple[Stage, ...]) -> None:
    point = torch.randn(20, generator=stream(0, "message"))
    cost, sent = cost_under(stages), message(stages)
    others = point + 0.7 * torch.randn(8, 20, generator=stream(7, "others"))
    costs = [float(cost(other, sent)) for other in others]
    assert float(cost(point, sent)) < min(costs)
