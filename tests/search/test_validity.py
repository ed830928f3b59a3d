"""Validity: the accuracy score is doubted where it tells nothing apart, says the contrary, or measures the batch."""

import torch

from leaktight.search.validity import doubts

SAME = torch.tensor([-2.0, -2.02])


def test_a_score_that_drops_a_few_is_not_doubted() -> None:
    assert list(doubts(SAME, [-1.9, -2.1, -2.15, -9.0], 1.1)) == []


def test_a_score_that_drops_nobody_says_nothing() -> None:
    [sentence] = doubts(SAME, [-1.9, -2.1, -2.15], 1.1)
    assert sentence.endswith("it passed all of 3 random policies.")


def test_a_score_by_which_most_changes_help_says_nothing() -> None:
    [sentence] = doubts(SAME, [-1.0, -1.0, -9.0], 1.1)
    assert "by it 2 of 3 random policies are better to learn from than images as they are" in sentence


def test_a_score_that_differs_from_batch_to_batch_is_doubted() -> None:
    [sentence] = doubts(torch.tensor([-1.0, -3.0]), [-1.9, -2.1, -9.0], 1.1)
    assert sentence.startswith("The accuracy score differs by 71% from batch to batch, where 10% decide")
    assert list(doubts(torch.tensor([-2.0]), [-1.9, -2.1, -9.0], 1.1)) == []
