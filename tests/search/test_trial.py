"""Trials: of the most private candidates those are chosen that a model learns from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from leaktight.data import Digits
from leaktight.models import MLP
from leaktight.search.candidates import Indices, candidate
from leaktight.search.measurement import Measurement
from leaktight.search.settings import Search
from leaktight.search.trial import GROUPS, choose_by_trial

RANKED = [candidate(text) for text in ("3-1", "7", "15", "0", "9")]


class Learned:
    """Measures what is known beforehand, and keeps what was asked."""

    def __init__(self, right: dict[Indices, float]) -> None:
        self.right, self.asked = right, list[Indices]()

    def learn(self, acts: Sequence[Indices]) -> list[Tensor]:
        self.asked += acts
        return [(torch.arange(100) < 100 * self.right.get(each, 0.0)).double() for each in acts]


def settings(**changes: object) -> Search:
    return Search.model_validate({"data": Digits(), "model": MLP(), "trained": 2, "loss": 0.05, **changes})


def test_the_most_private_that_keep_the_accuracy_are_chosen() -> None:
    learned = Learned({(): 0.9, (7,): 0.86, (0,): 0.95, (9,): 0.9})
    best, trials = choose_by_trial(settings(), RANKED, cast("Measurement", learned))
    assert [str(one) for one in best] == ["7", "0"]
    assert learned.asked == [(), (3, 1), (7,), (15,), (0,)]
    assert trials[()].cost is None
    assert round(trials[3, 1].cost or 0, 2) == 0.9
    low, high = trials[7,].interval
    assert low is not None
    assert high is not None
    assert low < 0.04 < high


def test_without_trials_the_order_decides() -> None:
    learned = Learned({})
    best, trials = choose_by_trial(settings(trained=0), RANKED, cast("Measurement", learned))
    assert ([str(one) for one in best], trials, learned.asked) == (["3-1", "7"], {}, [])


def test_after_some_groups_fewer_come_back() -> None:
    learned = Learned({(): 0.9, (9,): 0.9})
    best, trials = choose_by_trial(settings(trained=1), RANKED, cast("Measurement", learned))
    assert best == ()
    assert len(trials) == 1 + GROUPS
