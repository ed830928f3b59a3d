from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.metrics.v_information import MOST, balanced_mean, best_of, gains, t_interval, v_information


def gaussians(count: int, seed: object, apart: float = 1.0) -> tuple[Tensor, Tensor]:
    """Points of two kinds, as many of either, around `apart` and its opposite, with variance 1."""
    truth = torch.arange(count) % 2
    centre = (2 * truth - 1) * apart
    return centre + torch.randn(count, generator=stream(0, "points", seed), dtype=torch.float64), truth


def integrated(apart: float = 1.0) -> float:
    """The information of the true posterior, sigmoid(2 x apart), by numeric integration over the points of one kind."""
    grid = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    density = torch.exp(-((grid - apart) ** 2) / 2) / math.sqrt(2 * math.pi)
    return MOST + torch.trapezoid(density * torch.nn.functional.logsigmoid(2 * apart * grid), grid).item()


def logistic(seed: int, *, shuffled: bool = False) -> tuple[Tensor, Tensor]:
    """What a logistic regression that was fitted to 2000 points says of 2000 others."""
    kinds = []
    for part in ("fitted", "asked"):
        points, truth = gaussians(2000, (part, seed))
        # Where nothing is to be told, a property is nobody's: neither of what is learned from nor of what is asked
        # about.
        kinds.append(
            (points[:, None], truth[torch.randperm(2000, generator=stream(seed, part))] if shuffled else truth)
        )
    (known, has), (others, asked) = kinds
    model = LogisticRegression().fit(known.numpy(), has.numpy())
    return torch.from_numpy(model.predict_proba(others.numpy())[:, 1]), asked


@pytest.mark.parametrize("apart", [0.2, 1.0, 2.0])
def test_the_true_posterior_has_the_information_of_the_integral(apart: float) -> None:
    points, truth = gaussians(40_000, "posterior", apart)
    worth = gains(torch.sigmoid(2 * points * apart), truth, edge=1e-12)
    assert balanced_mean(worth, truth).item() == pytest.approx(integrated(apart), abs=4 * worth.std().item() / 200)


def test_a_logistic_family_reaches_the_posterior() -> None:
    values = [v_information(*logistic(seed)).item() for seed in range(5)]
    low, high = t_interval(values)
    assert low is not None
    assert high is not None
    assert 0 < low < integrated() < high < MOST


def test_shuffled_properties_tell_nothing() -> None:
    """Zero is in the interval of the union, which may say a half; a fitted family alone pays a little for what it fitted to noise."""
    pairs = [logistic(seed, shuffled=True) for seed in range(5)]
    low, high = t_interval(
        [best_of(gains(*pair)[None], pair[1], stream(seed, "halves")).item() for seed, pair in enumerate(pairs)]
    )
    assert low is not None
    assert high is not None
    assert -0.01 < low <= 0 <= high < 0.01
    # The expected log loss of two parameters that were fitted to n points for nothing is 2 / 2n above the best.
    low, high = t_interval([v_information(*pair).item() for pair in pairs])
    assert low is not None
    assert high is not None
    assert -0.002 < low < high < 0.001


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.integers(0, 1000))
def test_it_is_never_above_the_logarithm_of_two(answers: list[float], seed: int) -> None:
    truth = torch.arange(len(answers)) % 2
    assert v_information(torch.tensor(answers), truth).item() <= MOST
    if len(answers) >= 4:
        families = gains(torch.tensor([answers, answers[::-1]]), truth)
        assert best_of(families, truth, stream(seed, "halves")).item() <= MOST


def test_it_is_the_log_loss_of_another_library() -> None:
    truth = torch.tensor([1, 0, 0, 1, 0, 0, 0])
    answers = torch.rand(7, generator=stream(0, "answers"), dtype=torch.float64)
    weights = [1 / 2 if has else 1 / 5 for has in truth]
    expected = math.log(2) - log_loss(truth.numpy(), answers.numpy(), sample_weight=weights)
    assert v_information(answers, truth).item() == pytest.approx(expected)


def test_certainty_is_clipped_on_both_sides() -> None:
    right, wrong = gains(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([1, 0]))
    assert right.tolist() == pytest.approx([math.log(2 * 0.999)] * 2)
    assert wrong.tolist() == pytest.approx([math.log(2 * 0.001)] * 2)
    assert gains(torch.tensor([0.0]), torch.tensor([1]), edge=0.25).item() == pytest.approx(math.log(0.5))


def test_kinds_count_the_same_however_many_there_are() -> None:
    answers, truth = torch.tensor([0.9, 0.4]), torch.tensor([1, 0])
    few = v_information(answers, truth)
    many = v_information(answers[[0] * 99 + [1]], truth[[0] * 99 + [1]])
    assert many.item() == pytest.approx(few.item())
    assert v_information(torch.full((100,), 0.5), truth[[0] * 99 + [1]]).item() == pytest.approx(0)


def test_layers_and_families_stay_apart() -> None:
    truth = torch.arange(8) % 2
    answers = torch.rand(3, 2, 8, generator=stream(0, "answers"))
    found = v_information(answers, truth)
    assert found.shape == (3, 2)
    assert found[1, 0].item() == pytest.approx(v_information(answers[1, 0], truth).item())


def test_the_best_is_chosen_for_each_layer_by_other_messages() -> None:
    truth = torch.arange(40) % 2
    knows, doubts = 0.8 * truth + 0.1, torch.full((40,), 0.5)
    lies = 1 - knows
    # The first family is best in the first layer, the second in the second, none in the third.
    families = gains(torch.stack([torch.stack([knows, lies, lies]), torch.stack([doubts, knows, lies])]), truth)
    best = v_information(knows, truth).item()
    assert best_of(families, truth, stream(0, "halves")).tolist() == pytest.approx([best, best, 0])


def test_choosing_among_guesses_is_not_rewarded() -> None:
    """The largest of twenty families that know nothing would look like information; the chosen one does not."""
    truth = torch.arange(60) % 2
    largest, chosen = [], []
    for seed in range(40):
        noise = 0.5 + 0.3 * (torch.rand(20, 60, generator=stream(seed, "noise"), dtype=torch.float64) - 0.5)
        families = gains(noise, truth)
        largest.append(balanced_mean(families, truth).amax().item())
        chosen.append(best_of(families, truth, stream(seed, "halves")).item())
    low, _ = t_interval(largest)
    assert low is not None
    assert low > 0.02
    low, _ = t_interval(chosen)
    assert low is not None
    assert low < 0


def test_the_interval_is_students() -> None:
    values = [0.1, 0.3, 0.2, 0.6]
    mean, spread = 0.3, torch.tensor(values).std().item() / 2
    assert t_interval(values) == pytest.approx(student.interval(0.95, 3, loc=mean, scale=spread), rel=1e-5)
    assert t_interval([0.2, 0.2]) == pytest.approx((0.2, 0.2))
    assert t_interval([]) == (None, None)


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(InvalidValue, match="one probability for each of 3 messages"):
        gains(torch.tensor([0.5, 0.5]), torch.tensor([1, 0, 1]))
    for wrong in (1.5, -0.1, math.nan):
        with pytest.raises(InvalidValue, match=r"probabilities in \[0, 1\]"):
            gains(torch.tensor([wrong]), torch.tensor([1]))
    with pytest.raises(InvalidValue, match="needs messages with the property and without"):
        v_information(torch.tensor([0.5, 0.5]), torch.tensor([1, 1]))
    with pytest.raises(InvalidValue, match="two messages with the property and two without"):
        best_of(torch.zeros(1, 4), torch.tensor([1, 0, 0, 0]), stream(0, "halves"))
