"""Leak AUC over passes: scikit-learn's over rows, its chance, the theory, the ceiling; and the promises of every metric."""

from __future__ import annotations

import dataclasses
from typing import Literal

import pytest
import torch
from sklearn.metrics import roc_auc_score

from leaktight.core.attack import GuessedLabels, LabelScores, RowScores
from leaktight.core.label_bound import LabelBound
from leaktight.core.random import stream
from leaktight.metrics import LeakAUCPasses, standard
from leaktight.testing.metrics import Trial, check_metric

ROWS, BATCH, PASSES = 600, 100, 10


@pytest.fixture
def truth(ground_truths):
    def make(labels, rows, bound=None):
        found = ground_truths(
            [torch.zeros(len(own), 2) for own in rows], labels=[labels[own] for own in rows], classes=2
        )
        return [dataclasses.replace(ground_truth, bound=bound) for ground_truth in found]

    return make


def case(gap=0.4, seed=0):
    """Return labels, the rows of each message, and what each pass says of each row."""
    rng = torch.Generator().manual_seed(seed)
    labels = (torch.rand(ROWS, generator=rng) < 0.3).long()
    rows = [part for _ in range(PASSES) for part in torch.randperm(ROWS, generator=rng).split(BATCH)]
    return labels, rows, gap * labels.double() + torch.randn(1, PASSES, ROWS, generator=rng, dtype=torch.float64)


def scored(rows, values, blind=None, layers=(None,), signed=True, adds=True):
    keys = tuple(("label-party", step) for step in range(len(rows)))
    each = tuple(torch.zeros(len(layers), len(own)) for own in rows)
    blind = torch.randn(values.shape, generator=torch.Generator().manual_seed(9)).double() if blind is None else blind
    return LabelScores(keys, each, layers, signed, (), RowScores(tuple(rows), values, blind, adds))


def grade(guess, truth):
    return {(reading.name, reading.layer): reading for reading in LeakAUCPasses().grade(guess, truth, stream(0))}


def test_the_sum_over_passes_is_ranked_and_every_pass_before_it(truth):
    labels, rows, values = case()
    found = grade(scored(rows, values), truth(labels, rows))["leak_auc_passes", None]
    wanted = [roc_auc_score(labels, values[0, :seen].sum(0)) for seen in range(1, PASSES + 1)]
    assert found.each == pytest.approx(wanted)
    assert found.value == found.each[-1] > found.each[0] + 0.1
    assert (found.n, found.chance, found.leaks, found.against) == (ROWS, 0.5, "high", "raw")
    assert found.low < found.value < found.high
    assert found.beats_chance()


def test_theory_predicts_what_independent_messages_add_up_to(truth):
    labels, rows, values = case()
    found = grade(scored(rows, values), truth(labels, rows))
    predicted = found["leak_auc_theory", None]
    # Gaussian scores 0.4 apart, added up over 10 passes: Phi(0.4 sqrt(10 / 2)) = 0.814.
    assert predicted.value == pytest.approx(0.814, abs=0.03)
    assert predicted.value == pytest.approx(found["leak_auc_passes", None].value, abs=0.03)
    assert (predicted.leaks, predicted.low) == (None, None)


def test_rows_dealt_out_by_chance_are_at_a_half(truth):
    labels, rows, values = case()
    alone = grade(scored(rows, values), truth(labels, rows))["leak_auc_features", None]
    assert alone.low < 0.5 < alone.high
    assert (alone.chance, alone.leaks, alone.n) == (0.5, None, ROWS)


def test_an_unknown_sign_is_one_for_all_passes(truth):
    labels, rows, values = case()
    straight = grade(scored(rows, values), truth(labels, rows))["leak_auc_passes", None]
    folded = grade(scored(rows, -values, signed=False), truth(labels, rows))["leak_auc_passes", None]
    wrong = grade(scored(rows, -values), truth(labels, rows))["leak_auc_passes", None]
    assert folded.value == pytest.approx(straight.value) == pytest.approx(1 - wrong.value)
    assert folded.each == pytest.approx(straight.each)
    assert 0.5 < folded.chance < 0.53


def test_before_the_cut_what_the_features_tell_is_the_chance_level(truth):
    labels, rows, values = case()
    found = grade(scored(rows, values, -values, layers=("relu1",)), truth(labels, rows))
    told, alone = found["leak_auc_passes", "relu1"], found["leak_auc_features", "relu1"]
    assert told.chance == alone.value == pytest.approx(told.value)
    assert not told.beats_chance()


def test_where_nothing_is_added_the_last_word_counts(truth):
    labels, rows, values = case()
    values[0, -1, :50] = torch.nan
    found = grade(scored(rows, values, adds=False), truth(labels, rows))
    last = torch.where(values[0, -1].isnan(), values[0, -2], values[0, -1])
    assert found["leak_auc_passes", None].value == pytest.approx(roc_auc_score(labels, last))
    assert ("leak_auc_theory", None) not in found


def test_the_ceiling_is_that_of_the_stated_bound(truth):
    labels, rows, values = case()
    found = grade(scored(rows, values), truth(labels, rows, LabelBound(0.4)))["leak_auc_ceiling", None]
    assert found.value == pytest.approx(0.68)
    assert found.each == pytest.approx([LabelBound(0.4).ceiling(seen) for seen in range(1, PASSES + 1)])
    assert ("leak_auc_ceiling", None) not in grade(scored(rows, values), truth(labels, rows))


def test_rows_whose_label_was_told_do_not_count(truth):
    labels, rows, values = case()
    values[:, :, :200] = torch.nan
    found = grade(scored(rows, values), truth(labels, rows))["leak_auc_passes", None]
    assert found.n == ROWS - 200
    assert found.value == pytest.approx(roc_auc_score(labels[200:], values[0, :, 200:].sum(0)))


def test_it_is_silent_where_no_row_was_seen_twice_and_about_any_other_guess(truth):
    labels, rows, values = case()
    once = rows[: ROWS // BATCH]
    assert grade(scored(once, values[:, :1]), truth(labels, once)) == {}
    guess = scored(rows, values)
    assert grade(dataclasses.replace(guess, passes=None), truth(labels, rows)) == {}
    assert grade(GuessedLabels(guess.keys, tuple(labels[own] for own in rows)), truth(labels, rows)) == {}
    assert grade(scored(rows, values), []) == {}
    assert LeakAUCPasses() in standard()
    one_class = torch.zeros(ROWS, dtype=torch.long)
    assert grade(scored(rows, values), truth(one_class, rows)) == {}


class OnlyPasses(LeakAUCPasses):
    """The reading that is about leakage; those beside it have no direction."""

    kind: Literal["test_only_passes"] = "test_only_passes"

    def grade(self, guess, truth, rng, public=None):
        return tuple(reading for reading in super().grade(guess, truth, rng, public) if reading.leaks is not None)


def test_it_keeps_the_promises_of_every_metric(truth):
    labels, rows, values = case()
    perfect = labels.double().expand(1, PASSES, ROWS).contiguous()
    trial = Trial(
        truth=tuple(truth(labels, rows)),
        perfect=scored(rows, perfect),
        blind=scored(rows, torch.zeros_like(values)),
        wrong=scored(rows, torch.rand(values.shape, generator=torch.Generator().manual_seed(4)).double()),
        shuffled=scored(rows, 3 * perfect - 7),
        other=GuessedLabels(
            tuple(("label-party", step) for step in range(len(rows))), tuple(labels[own] for own in rows)
        ),
    )
    check_metric(OnlyPasses(), trial)
