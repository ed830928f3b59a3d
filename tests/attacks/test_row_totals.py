"""Row totals: scores of a row in several messages, whatever sign each message came with."""

from __future__ import annotations

import pytest
import torch

from leaktight.attacks.row_totals import RowTotals, standardise, worth_adding
from leaktight.statistics.auc import auc

ROWS, WIDTH, PASSES = 400, 8, 12


def messages(seed=0, gap=0.5):
    """Return labels, and for each pass the noisy rows of all examples, along a direction that turns slowly, in halves."""
    rng = torch.Generator().manual_seed(seed)
    labels = (torch.rand(ROWS, generator=rng) < 0.3).long()
    way = torch.nn.functional.normalize(torch.randn(WIDTH, generator=rng), dim=0)
    found = []
    for number in range(PASSES):
        way = torch.nn.functional.normalize(way + 0.1 * torch.randn(WIDTH, generator=rng), dim=0)
        along = gap * labels.double() + torch.randn(ROWS, generator=rng).double()
        rows = along[:, None] * way.double()
        order = torch.randperm(ROWS, generator=rng)
        found += [(number, half, rows[half], rows[half] @ way.double()) for half in order.chunk(2)]
    return labels, found


def added(turns, sign, seed=0):
    labels, found = messages(seed)
    totals = RowTotals(1, range(PASSES), ROWS, turns)
    for number, index, rows, scores in found:
        totals.add(0, number, index, sign() * scores, rows)
    return auc(totals.finish(torch.zeros(ROWS, dtype=torch.bool))[0].nansum(0), labels)


def coin(seed):
    rng = torch.Generator().manual_seed(seed)
    return lambda: 1 if torch.rand((), generator=rng) < 0.5 else -1


@pytest.mark.parametrize("seed", range(3))
def test_signs_of_chance_are_mended_by_continuity(seed):
    straight = added(False, lambda: 1, seed)
    mended = added(True, coin(seed), seed)
    assert straight > 0.85
    assert max(mended, 1 - mended) == pytest.approx(straight, abs=0.01)
    # Without it what is added up cancels.
    assert abs(added(False, coin(seed), seed) - 0.5) < 0.25


def test_the_sign_of_most_messages_is_kept():
    flips = iter([1, -1, 1, 1] * PASSES)
    assert added(True, lambda: next(flips)) > 0.85
    flips = iter([-1, 1, -1, -1] * PASSES)
    assert added(True, lambda: next(flips)) < 0.15


def test_a_message_counts_the_same_whatever_its_scale():
    _, found = messages()
    values = []
    for scale in (1.0, 1e-6):
        totals = RowTotals(1, range(PASSES), ROWS, turns=True)
        for number, index, rows, scores in found:
            factor = scale if number % 2 else 1.0
            totals.add(0, number, index, factor * scores, factor * rows)
        values.append(totals.finish(torch.zeros(ROWS, dtype=torch.bool)))
    assert torch.allclose(*values)


def test_what_has_no_score_and_what_is_known_is_left_out():
    totals = RowTotals(1, [3, 7], 5, turns=False)
    totals.add(0, 3, torch.tensor([0, 2]), torch.tensor([1.0, 3.0]), torch.ones(2, 1))
    totals.add(0, 7, torch.tensor([2, 4]), torch.tensor([torch.nan, torch.nan]), torch.ones(2, 1))
    totals.add(0, 7, torch.tensor([1, 4, 0]), torch.tensor([0.0, torch.nan, 2.0]), torch.ones(3, 1))
    known = torch.tensor([False, True, False, False, False])
    found = totals.finish(known)[0]
    assert found.isnan().tolist() == [[False, True, False, True, True], [False, True, True, True, True]]
    assert found[0, [0, 2]].tolist() == [-1.0, 1.0]
    assert found[1, 0] == 1.0


def test_scores_that_are_all_the_same_say_nothing():
    assert standardise(torch.full((3,), 1e30)).tolist() == [0.0, 0.0, 0.0]


def test_too_many_totals_and_rows_that_hardly_come_again_are_not_added_up(monkeypatch):
    rows = [torch.arange(100), torch.arange(100)]
    assert worth_adding(rows, [0, 1], layers=3)
    assert not worth_adding([torch.arange(100), torch.arange(40)], [0, 1], layers=3)
    monkeypatch.setattr("leaktight.attacks.row_totals.MOST_TOTALS", 599)
    assert not worth_adding(rows, [0, 1], layers=3)
