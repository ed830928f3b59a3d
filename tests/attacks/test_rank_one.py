"""One example is read off all rows of a gradient at once."""

import dataclasses
import math

import pytest
import torch

from leaktight.attacks.rank_one import entry_variances, fit_rank_one, visible_variances
from leaktight.attacks.replay import Replay
from leaktight.core.defence import Chain
from leaktight.core.message import Kind
from leaktight.core.threat import ThreatModel
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, LayerGuard, LocalDP, TopK


def example(units=40, width=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    slopes = torch.randn(units, generator=generator, dtype=torch.float64)
    seen = torch.rand(width + 1, generator=generator, dtype=torch.float64)
    seen[-1] = 1
    return slopes, seen, generator


def error(fit, seen):
    return (fit.seen / fit.seen[-1] - seen).norm().item()


@pytest.mark.parametrize("units", [3, 40])
def test_it_is_total_least_squares(units):
    slopes, seen, generator = example(units)
    noisy = torch.outer(slopes, seen) + 0.05 * torch.randn(units, 13, generator=generator, dtype=torch.float64)
    fit = fit_rank_one(noisy)
    left, values, right = torch.linalg.svd(noisy, full_matrices=False)
    torch.testing.assert_close(torch.outer(fit.slopes, fit.seen), values[0] * torch.outer(left[:, 0], right[0]))


def test_all_rows_beat_the_best_row_and_the_spread_says_by_how_much_both_are_off():
    errors, rows, spreads = [], [], []
    for seed in range(40):
        slopes, seen, generator = example(seed=seed)
        noisy = torch.outer(slopes, seen) + 0.02 * torch.randn(40, 13, generator=generator, dtype=torch.float64)
        fit, best = fit_rank_one(noisy), noisy[noisy[:, -1].abs().argmax()]
        errors.append((fit.seen / fit.seen[-1] - seen)[:-1].square().mean().sqrt())
        rows.append((best / best[-1] - seen)[:-1].square().mean().sqrt())
        spreads.append((fit.spread / fit.seen[-1].abs())[:-1].mean())
    errors, rows, spreads = (torch.stack(each).square().mean().sqrt() for each in (errors, rows, spreads))
    assert errors < rows / 2
    # Of the ratio the last entry's own error is a part, which the spread leaves out.
    assert 0.6 < spreads / errors < 1.1


def test_a_known_law_is_better_than_none():
    plain, weighted = [], []
    for seed in range(20):
        slopes, seen, generator = example(seed=seed)
        std = 10 ** (-3 * torch.rand(40, 13, generator=generator, dtype=torch.float64))
        noisy = torch.outer(slopes, seen) + std * torch.randn(40, 13, generator=generator, dtype=torch.float64)
        plain.append(error(fit_rank_one(noisy), seen))
        weighted.append(error(fit_rank_one(noisy, std**-2), seen))
    assert sum(weighted) < 0.1 * sum(plain)


def test_entries_of_no_precision_do_not_count():
    slopes, seen, generator = example()
    kept = torch.rand(40, 13, generator=generator) > 0.5
    fit = fit_rank_one(torch.where(kept, torch.outer(slopes, seen), 1e3), kept.double())
    assert error(fit, seen) < 1e-6


def test_nothing_gives_a_finite_answer():
    fit = fit_rank_one(torch.zeros(4, 3, dtype=torch.float64))
    assert fit.seen.isfinite().all()
    assert fit.slopes.abs().max() == 0


def test_a_law_that_does_not_explain_what_is_left_makes_nobody_sure():
    generator = torch.Generator().manual_seed(0)
    seen, slopes = (torch.randn(count, generator=generator).double() for count in (9, 30))
    noise = 0.5 * torch.randn(30, 9, generator=generator).double()
    told, lied = (
        fit_rank_one(slopes[:, None] * seen + noise, torch.full((30, 9), 1 / std**2).double()) for std in (0.5, 1e-6)
    )
    assert torch.allclose(told.seen, lied.seen)
    assert torch.allclose(told.spread, lied.spread, rtol=0.2)


WEIGHT, HEAD = "body.1.weight", "head.weight"


def law(run):
    """Return the variances of the first message's entries, and the message."""
    view = ThreatModel().view(run)
    sent = view.exchanges()[0].sent
    replay = dataclasses.replace(Replay.of(view.task, sent), channel=run.defence.channel(view.task))
    return entry_variances(replay, sent.tensors), sent.tensors


@pytest.mark.parametrize(
    ("defence", "std"),
    [
        (GaussianNoise(std=0.02), 0.02),
        (LaplaceNoise(scale=0.02), 0.02 * math.sqrt(2)),
        (LocalDP(clip=0.5, multiplier=0.1), 0.05),
        (DPSGD(clip=0.5, multiplier=0.1), 0.05),
        (Chain(links=(GaussianNoise(std=0.03), GaussianNoise(std=0.04))), 0.05),
    ],
    ids=str,
)
def test_noise_has_its_variance_whatever_is_clipped(observe, defence, std):
    variances, _ = law(observe(victims=1, defence=defence))
    for each in variances.values():
        torch.testing.assert_close(each.sqrt(), torch.full_like(each, std), rtol=1e-4, atol=0)


def test_noise_of_a_step_is_that_of_the_step_in_an_update(observe):
    run = observe(victims=1, defence=GaussianNoise(std=0.02, each="step"), rate=0.1, shares=Kind.UPDATE)
    assert law(run)[0][WEIGHT].sqrt().mean().item() == pytest.approx(0.002, rel=1e-3)


def test_what_was_left_out_lies_within_the_smallest_that_came(observe):
    variances, sent = law(observe(victims=1, defence=TopK(share=0.3)))
    edge = min(tensor.abs()[tensor != 0].min().item() for tensor in sent.values())
    for name, tensor in sent.items():
        torch.testing.assert_close(
            variances[name][tensor == 0].sqrt().float(), torch.full_like(tensor[tensor == 0], edge / math.sqrt(3))
        )
        assert (variances[name][tensor != 0].sqrt() < 1e-3 * edge).all()


def test_only_guarded_layers_have_noise(observe):
    variances, _ = law(observe(victims=1, defence=LayerGuard(layers=("head",), guard=GaussianNoise(std=0.1))))
    assert variances[HEAD].min() > 0.009
    assert variances[WEIGHT].max() < 1e-10


def test_a_mask_shows_in_zeros_that_no_row_and_no_column_explains():
    gradient = torch.outer(torch.tensor([0.0, 1.0, -2.0]), torch.tensor([3.0, 0.0, 0.5, 1.0])).double()
    assert visible_variances(gradient) is None
    gradient[1, 2] = 0
    found = visible_variances(gradient)
    assert found is not None
    assert found[1, 2].sqrt().item() == pytest.approx(1.0 / math.sqrt(3))
    assert found[2, 0].sqrt().item() < 1e-5
