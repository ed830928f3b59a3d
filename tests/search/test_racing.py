from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from leaktight.core.random import stream
from leaktight.search.candidates import CandidatePolicy, candidate, choose, draw_candidates
from leaktight.search.racing import Scores, by_mean, exhaust, race, survivors
from leaktight.search.score_task import blocks

IMAGES = 100


class Table:
    """Scores that are known beforehand, and how many of them were asked for."""

    def __init__(self, scores: dict[CandidatePolicy, Tensor]) -> None:
        self.scores, self.asked = scores, 0

    def __call__(self, candidates: Sequence[CandidatePolicy], start: int, stop: int) -> Scores:
        assert (start, stop) in blocks(IMAGES)
        self.asked += len(candidates) * (stop - start)
        return {one: self.scores[one][start:stop] for one in candidates}


def table(seed: int, count: int = 200, spread: float = 0.06, each: float = 0.08) -> Table:
    """Policies whose scores differ by image and by policy, as measured ones do: most of the spread over images is common to all."""
    rng = stream(seed, "race")
    candidates = draw_candidates(count, tuple(range(50)), 3, rng)
    image = 0.1 * torch.randn(IMAGES, generator=rng, dtype=torch.float64)
    return Table(
        {
            one: 0.7
            + spread * torch.randn((), generator=rng)
            + image
            + each * torch.randn(IMAGES, generator=rng, dtype=torch.float64)
            for one in candidates
        }
    )


def mean(scores: Scores, best: Sequence[CandidatePolicy]) -> float:
    return sum(scores[one].mean().item() for one in best) / len(best)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_race_chooses_as_well_as_scoring_everything_for_a_part_of_the_work(count: int) -> None:
    gaps, shares = [], []
    for seed in range(10):
        all_of_them, raced = table(seed), table(seed)
        full = exhaust(list(all_of_them.scores), IMAGES, all_of_them)
        assert all_of_them.asked == len(full) * IMAGES
        left = race(list(raced.scores), count, IMAGES, raced)
        wanted, found = choose(by_mean(full), count), choose(by_mean(left), count)
        assert len(found) == count
        gaps.append(mean(full, found) / mean(full, wanted) - 1)
        shares.append(raced.asked / all_of_them.asked)
        for one in left:
            assert torch.equal(left[one], full[one])
    assert sum(gaps) / len(gaps) <= 0.01
    assert max(shares) < 0.25


def test_clear_losers_cost_the_first_images_only() -> None:
    levels = {candidate(text): level for text, level in (("3", 0.1), ("1", 0.2), ("0", 0.8), ("2", 0.9))}
    rng = stream(0)
    scores = Table({one: level + 0.01 * torch.rand(IMAGES, generator=rng) for one, level in levels.items()})
    assert list(map(str, race(list(levels), 2, IMAGES, scores))) == ["3", "1"]
    assert scores.asked == 2 * 8 + 2 * IMAGES


def test_of_candidates_that_cannot_be_told_apart_half_goes_on() -> None:
    same = 0.1 * torch.rand(8, generator=stream(0), dtype=torch.float64)
    scores = {
        candidate(text): same + 1e-4 * (-1.0) ** torch.arange(8) * number for number, text in enumerate(("3", "1", "0"))
    }
    assert len(survivors(scores, 1)) == 2


def test_a_difference_that_is_the_same_in_every_image_is_seen_though_images_vary() -> None:
    image = torch.rand(8, generator=stream(0), dtype=torch.float64)
    tiny = 1e-5 * torch.rand(8, generator=stream(1), dtype=torch.float64)
    scores = {candidate("3"): image, candidate("1"): image + 0.001 + tiny}
    assert list(map(str, survivors(scores, 1))) == ["3"]


def test_at_most_half_go_on_and_the_chosen_always_do() -> None:
    rng = stream(0)
    noise = torch.rand(20, 8, generator=rng, dtype=torch.float64)
    one_function = {candidate(f"3-{index}"): noise[index] for index in range(19)}
    scores = {**one_function, candidate("24-24"): 1.0 + noise[19]}
    left = survivors(scores, 2)
    # All but one share the third function, so that the last in the ranking is the second of the chosen.
    assert len(left) == 11
    assert left[-1] == candidate("24-24")
    assert left[:10] == by_mean(scores)[:10]


def test_who_was_dropped_comes_back_if_too_few_can_be_chosen_without() -> None:
    """On the first images `0-1` and `2` lead and are apart; `1-2`, which in the end is best, shares a function with both."""
    levels = {"0-1": (0.1, 0.5), "2": (0.2, 0.5), "1-2": (0.18, 0.0), "7": (0.9, 0.9), "18": (0.95, 0.8)}
    made = {}
    for text, (early, late) in levels.items():
        noise = 0.02 * torch.rand(IMAGES, generator=stream(0, text), dtype=torch.float64)
        made[candidate(text)] = torch.cat([torch.full((16,), early), torch.full((84,), late)]).double() + noise
    scores = Table(made)
    left = race(list(made), 2, IMAGES, scores)
    assert candidate("18") not in left
    assert all(len(one) == IMAGES for one in left.values())
    assert list(map(str, choose(by_mean(left), 2))) == ["1-2", "7"]


def test_a_race_of_too_few_ends() -> None:
    scores = Table({candidate(text): torch.rand(IMAGES, generator=stream(0, text)) for text in ("3", "3-1")})
    assert len(race(list(scores.scores), 2, IMAGES, scores)) == 2


def test_nobody_is_dropped_while_too_few_can_be_chosen() -> None:
    scores = {
        candidate(text): torch.full((8,), level, dtype=torch.float64)
        for text, level in (("3", 0.1), ("3-1", 0.5), ("3-0", 0.9))
    }
    assert len(survivors(scores, 2)) == 3
    assert list(map(str, survivors(scores, 1))) == ["3"]


def test_equal_means_are_ranked_by_their_functions() -> None:
    scores = {candidate(text): torch.zeros(8) for text in ("7", "3-1", "1")}
    assert list(map(str, by_mean(scores))) == ["1", "3-1", "7"]
