import math
from itertools import product

import numpy as np
import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.statistics import Outcomes, newcombe, pack_ranks, paired_interval, unpack
from leaktight.statistics.auc import auc, placements


def hits(*counts):
    """Rows by how many both, the first only, the second only and neither tell right."""
    pattern = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    rows = pattern.repeat_interleave(torch.tensor(counts), dim=0)
    return rows[:, 0], rows[:, 1]


def of_hits(one, other):
    return Outcomes("hits", (one,)), Outcomes("hits", (other,))


def of_ranks(scores, positive, pack=False):
    ups, downs = placements(scores, positive)
    return unpack(pack_ranks(ups, downs)) if pack else Outcomes("ranks", (ups, downs))


@pytest.mark.parametrize(
    ("law", "most"),
    [
        ((0.7, 0.1, 0.05, 0.15), 0.99),
        ((0.5, 0.2, 0.2, 0.1), 0.99),
        ((0.25, 0.25, 0.25, 0.25), 0.99),
        ((0.9, 0.05, 0.01, 0.04), 1.0),
    ],
)
def test_newcombe_covers_what_it_says(law, most):
    """Exactly, over every table of 24 rows: no simulation.

    Where hardly any row differs it is wider than it needs to be.
    """
    n, truth, covered = 24, law[1] - law[2], 0.0
    for both, only, less in product(range(n + 1), repeat=3):
        neither = n - both - only - less
        if neither < 0:
            continue
        ways = math.factorial(n) // math.prod(map(math.factorial, (both, only, less, neither)))
        weight = ways * math.prod(p**k for p, k in zip(law, (both, only, less, neither), strict=True))
        if weight < 1e-7:
            continue
        low, high = newcombe(*hits(both, only, less, neither))
        covered += weight * (low <= truth <= high)
    assert 0.93 < covered < most


def test_newcombe_turns_round_with_its_models_and_is_narrower_than_unpaired():
    one, other = hits(60, 12, 4, 24)
    low, high = newcombe(one, other)
    assert newcombe(other, one) == pytest.approx((-high, -low))
    # The same shares on rows that have nothing to do with each other.
    low_apart, high_apart = newcombe(*hits(46, 26, 18, 10))
    assert high - low < 0.75 * (high_apart - low_apart)


def test_two_models_that_agree_on_every_row_still_may_differ_a_little():
    low, high = newcombe(*hits(800, 0, 0, 200))
    assert -0.006 < low < 0 < high < 0.006


def test_newcombe_agrees_with_the_bootstrap():
    one, other = hits(600, 90, 40, 270)
    difference = (one - other).numpy()
    drawn = np.random.default_rng(0).choice(difference, (4000, len(difference))).mean(1)
    assert newcombe(one, other) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.003)


def scores_of(count, seed, rng_name="ranks"):
    rng = stream(seed, rng_name)
    positive = torch.rand(count, generator=rng) < 0.3
    latent = positive.double() + torch.randn(count, generator=rng).double()
    one, other = (latent + 0.5 * torch.randn(count, generator=rng).double() + s * positive for s in (0.3, 0.0))
    return one, other, positive


def test_the_paired_auc_interval_is_delong_s():
    """By the definition: every pair of a positive and a negative, and the covariances of the two kernels."""
    one, other, positive = scores_of(60, seed=1)
    kernels = [
        ((s[positive][:, None] > s[~positive]).double() + (s[positive][:, None] == s[~positive]) / 2)
        for s in (one, other)
    ]
    by_positive, by_negative = (torch.stack([kernel.mean(side) for kernel in kernels]) for side in (1, 0))
    covariance = torch.cov(by_positive) / by_positive.shape[1] + torch.cov(by_negative) / by_negative.shape[1]
    spread = math.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    value = (kernels[0].mean() - kernels[1].mean()).item()
    found = paired_interval([(of_ranks(one, positive), of_ranks(other, positive))], [value])
    assert found == pytest.approx((value - 1.959964 * spread, value + 1.959964 * spread))


def test_the_paired_auc_interval_agrees_with_the_bootstrap_and_survives_packing():
    one, other, positive = scores_of(600, seed=2)
    value = auc(one, positive) - auc(other, positive)
    rng, places = np.random.default_rng(0), [positive.nonzero()[:, 0].numpy(), (~positive).nonzero()[:, 0].numpy()]
    drawn = []
    for _ in range(600):
        rows = torch.from_numpy(np.concatenate([rng.choice(part, len(part)) for part in places]))
        drawn.append(auc(one[rows], positive[rows]) - auc(other[rows], positive[rows]))
    for pack in (False, True):
        low, high = paired_interval([(of_ranks(one, positive, pack), of_ranks(other, positive, pack))], [value])
        assert high - low == pytest.approx(2 * 1.96 * np.std(drawn), rel=0.1)
    exact = paired_interval([(of_ranks(one, positive), of_ranks(other, positive))], [value])
    assert (low, high) == pytest.approx(exact, abs=2e-4)


def test_the_paired_auc_interval_covers_what_it_says():
    truth = np.mean([auc(o, p) - auc(u, p) for o, u, p in (scores_of(20_000, s, "truth") for s in range(4))])
    inside = 0
    for seed in range(300):
        one, other, positive = scores_of(120, seed)
        value = auc(one, positive) - auc(other, positive)
        low, high = paired_interval([(of_ranks(one, positive), of_ranks(other, positive))], [value])
        inside += low <= truth <= high
    assert 0.91 <= inside / 300 <= 0.98


def trained(k, rows, between, rng):
    """Two models for each seed on the same rows, which differ in what they find hard, and by more than chance between seeds."""
    hard, pairs = 2 * torch.randn(rows, generator=rng), []
    for _ in range(k):
        own = [hard + torch.randn(rows, generator=rng) + between * torch.randn(1, generator=rng) for _ in range(2)]
        pairs.append(of_hits((own[0] > -1.6).double(), (own[1] > -1.2).double()))
    values = [(one.groups[0] - other.groups[0]).mean().item() for one, other in pairs]
    return pairs, values


@pytest.mark.parametrize(("k", "between"), [(1, 0.0), (3, 0.0), (3, 0.4), (5, 0.2)])
def test_the_interval_over_seeds_covers_other_rows_and_other_training_runs(k, between):
    # A sum of normal parts: the hits have a known share.
    spread = math.sqrt(5 + between**2)
    truth = 0.5 * (math.erf(1.6 / spread / math.sqrt(2)) - math.erf(1.2 / spread / math.sqrt(2)))
    rng, inside = stream(0, "coverage", k), 0
    for _ in range(300):
        pairs, values = trained(k, 150, between, rng)
        low, high = paired_interval(pairs, values)
        inside += low <= truth <= high
    assert inside / 300 >= 0.92


def test_the_same_seed_twice_tells_no_more_than_once():
    """Rows are shared by all seeds, so that they do not average out as if they were new."""
    pair = of_hits(*hits(70, 12, 4, 14))
    once, twice = paired_interval([pair], [0.08]), paired_interval([pair, pair], [0.08, 0.08])
    assert twice == pytest.approx(once)


def test_more_trainings_that_differ_tell_more():
    rng = stream(1, "seeds")
    widths = {}
    for k in (2, 4, 12):
        found = [paired_interval(*trained(k, 200, 0.3, rng)) for _ in range(30)]
        widths[k] = np.median([high - low for low, high in found])
    assert widths[2] > widths[4] > widths[12]


def test_seeds_that_never_differ_are_no_trouble():
    same = of_hits(*hits(8, 0, 0, 2))
    low, high = paired_interval([same, same], [0.0, 0.0])
    assert low < 0 < high
    ranks = Outcomes("ranks", (torch.ones(3), torch.ones(2)))
    assert paired_interval([(ranks, ranks)], [0.0]) == (0.0, 0.0)
    assert paired_interval([(Outcomes("ranks", (torch.ones(1), torch.ones(4))),) * 2], [0.0]) == (None, None)


def test_other_rows_are_refused():
    one, other = of_hits(*hits(3, 1, 0, 1)), of_hits(*hits(3, 1, 0, 2))
    for pairs, values in (([(one[0], other[0])], [0.1]), ([one, other], [0.1, 0.1]), ([one], []), ([], [])):
        with pytest.raises(InvalidValue, match="outcomes of the same rows"):
            paired_interval(pairs, values)
    with pytest.raises(InvalidValue, match="the same rows twice"):
        newcombe(torch.ones(3), torch.ones(2))


def test_shares_have_the_interval_of_their_mean_difference():
    rng = torch.Generator().manual_seed(0)
    one, other = torch.rand(2, 400, generator=rng).double()
    pair = Outcomes("shares", (one,)), Outcomes("shares", (other,))
    difference = (one - other).mean().item()
    low, high = paired_interval([pair], [difference])
    assert (high - low) / 2 == pytest.approx(1.96 * (one - other).std().item() / 20, rel=1e-3)
    assert (low + high) / 2 == pytest.approx(difference)
