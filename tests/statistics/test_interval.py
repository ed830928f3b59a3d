import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.statistics.interval import bootstrap, wilson


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 500), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_wilson_agrees_with_scipy(n, share, level):
    successes = round(share * n)
    expected = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    low, high = wilson(successes, n, level)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= low <= successes / n <= high <= 1


def test_wilson_takes_fractions_and_no_trials():
    assert wilson(0, 0) == (None, None)
    halves, low, high = wilson(2.5, 5), *wilson(0.5, 1)
    assert halves[0] + halves[1] == pytest.approx(1)
    assert low < halves[0] < halves[1] < high


@pytest.mark.parametrize(("groups", "least", "most"), [(5, 0.78, 0.89), (30, 0.9, 0.97)])
def test_bootstrap_covers_the_mean_about_as_often_as_documented(groups, least, most):
    draws = torch.randn(400, groups, generator=stream(0, "draws")) + 3
    rng = stream(0, "coverage")
    intervals = [bootstrap(values, rng, resamples=400) for values in draws]
    covered = sum(low <= 3 <= high for low, high in intervals) / 400
    assert least < covered < most


def test_bootstrap_of_groups_covers_where_that_of_values_does_not():
    shared = torch.randn(200, 20, generator=stream(1, "groups"))
    values = shared.repeat_interleave(10, 1) + 0.1 * torch.randn(200, 200, generator=stream(1, "values"))
    groups = torch.arange(20).repeat_interleave(10)
    rng = stream(1, "coverage")
    by_group = [bootstrap(row, rng, groups, resamples=300) for row in values]
    by_value = [bootstrap(row, rng, resamples=300) for row in values]
    assert sum(low <= 0 <= high for low, high in by_group) > 0.86 * 200
    assert sum(low <= 0 <= high for low, high in by_value) < 0.6 * 200


def test_bootstrap_of_groups_is_the_plain_resampling_of_whole_groups():
    """Written out: draw groups, join their values, take the mean."""
    values, groups = torch.tensor([1.0, 2, 6, 3, 3, 9, 0]), torch.tensor([4, 4, 1, 1, 1, 8, 9])
    members = [values[groups == group] for group in (1, 4, 8, 9)]
    drawn = torch.randint(4, (1000, 4), generator=stream(2, "draw"))
    means = torch.stack([torch.cat([members[g] for g in row]).double().mean() for row in drawn.tolist()])
    expected = torch.quantile(means, torch.tensor([0.05, 0.95], dtype=torch.float64)).tolist()
    assert bootstrap(values, stream(2, "draw"), groups, level=0.9, resamples=1000) == pytest.approx(tuple(expected))


def test_bootstrap_agrees_with_scipy():
    values = torch.rand(40, generator=stream(3), dtype=torch.float64).square()
    theirs = stats.bootstrap(
        (values.numpy(),), lambda x, axis: x.mean(axis), method="percentile", n_resamples=9999, rng=0
    )
    expected = theirs.confidence_interval
    assert bootstrap(values, stream(4), resamples=9999) == pytest.approx((expected.low, expected.high), abs=4e-3)


def test_bootstrap_is_decided_by_its_stream_alone():
    values, state = torch.rand(30, generator=stream(0)), torch.random.get_rng_state()
    assert bootstrap(values, stream(1)) == bootstrap(values, stream(1))
    assert bootstrap(values, stream(1)) != bootstrap(values, stream(2))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_bootstrap_of_very_many_groups_stays_within_memory():
    values = torch.rand(50_000, generator=stream(0))
    low, high = bootstrap(values, stream(1), resamples=200)
    assert 0 < high - low < 0.02


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=12), st.integers(0, 100))
def test_bootstrap_holds_the_mean_and_stays_within_the_values(numbers, seed):
    values = torch.tensor(numbers, dtype=torch.float64)
    low, high = bootstrap(values, stream(seed), resamples=200)
    slack = 1e-12 * values.abs().max().item()
    assert values.min().item() - slack <= low <= values.mean().item() <= high <= values.max().item() + slack


@pytest.mark.parametrize("count", range(3, 12))
def test_the_interval_of_equal_values_holds_their_mean_to_the_last_bit(count):
    for number in (0.1, 0.3, 0.7, 1 / 3):
        values = torch.full((3 * count,), number, dtype=torch.float64)
        low, high = bootstrap(values, stream(0), groups=torch.arange(count).repeat(3), resamples=50)
        assert low <= values.mean().item() <= high


def test_one_observation_or_none_has_no_interval():
    assert bootstrap(torch.tensor([3.0]), stream(0)) == (None, None)
    assert bootstrap(torch.tensor([]), stream(0)) == (None, None)
    assert bootstrap(torch.rand(5), stream(0), groups=torch.zeros(5, dtype=torch.long)) == (None, None)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: wilson(3, 2), r"The `successes` of wilson must be a number in \[0, 2\]. Got 3 instead"),
        (lambda: wilson(-1, 2), r"Got -1 instead"),
        (lambda: wilson(1, 2, level=1), r"The `level` of an interval must be a number in \(0, 1\). Got 1 instead"),
        (lambda: bootstrap(torch.rand(3), stream(0), level=0), r"Got 0 instead"),
        (lambda: bootstrap(torch.rand(3), stream(0), torch.arange(2)), r"one for each of the 3 values. Got 2 instead"),
        (lambda: bootstrap(torch.tensor([1.0, float("nan")]), stream(0)), r"must be finite numbers"),
    ],
)
def test_wrong_arguments_are_errors_in_words(call, text):
    with pytest.raises(InvalidValue, match=text):
        call()
