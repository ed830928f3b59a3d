"""What is compared with a known positive: which one, and what happens without any."""

from __future__ import annotations

import pytest
import torch

from leaktight.attacks import Direction, InnerProduct
from leaktight.attacks.known_positive import KnownPositive
from leaktight.core.threat import Hints, Knows

ROWS = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0], [1.0, 1.0]])


class First(KnownPositive):
    def compare(self, rows, known):
        return rows[:, 0] * 0 + known.sum()


@pytest.fixture
def first():
    return First.model_construct(kind="first", layer="cut")


def test_the_first_known_positive_is_compared_with_and_not_scored(first):
    hints = Hints(torch.tensor([0, 2, 1]), torch.tensor([0, 1, 1]))
    assert first.used_positions(hints).tolist() == [2]
    assert first.score(ROWS, hints).tolist() == [3.0] * 4


@pytest.mark.parametrize("labels", [[0, 0], []])
def test_without_one_nothing_is_scored(first, labels):
    hints = Hints(torch.arange(len(labels)), torch.tensor(labels, dtype=torch.long))
    assert first.score(ROWS, hints) is None
    assert not len(first.used_positions(hints))


@pytest.mark.parametrize("attack", [Direction(), InnerProduct()], ids=str)
def test_who_compares_needs_hints(attack):
    assert isinstance(attack, KnownPositive)
    assert attack.needs == frozenset({Knows.HINTS})
