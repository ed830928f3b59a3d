"""Norm histograms: counts by class against numpy, relative to each step, bounded, and silent about other messages."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.attack import LabelScores
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.metrics import NormHistogram, standard
from leaktight.metrics.norm_histogram import BINS, HIGHEST, LOWEST, histogram, relative

GUESS = LabelScores((), ())


@pytest.fixture
def sent(ground_truths):
    """Return the other side of cut gradients with these rows."""

    def make(rows, labels, kind=Kind.CUT_GRADIENT, classes=2):
        made = ground_truths([torch.zeros(len(each), 2) for each in labels], labels=labels, classes=classes)
        return tuple(
            dataclasses.replace(
                ground_truth,
                sent=Message(kind, "label-party", "feature-party", step, {"gradient": rows[step]}),
                task=ground_truth.task,
            )
            for step, ground_truth in enumerate(made)
        )

    return make


def grade(truth):
    return {reading.name: reading for reading in NormHistogram().grade(GUESS, truth, stream(0))}


def test_counts_agree_with_numpy_step_by_step(sent):
    rng = torch.Generator().manual_seed(0)
    rows = [scale * torch.randn(64, 8, generator=rng) for scale in (1.0, 1e-6)]
    labels = [(torch.rand(64, generator=rng) < 0.2).long() for _ in rows]
    found = grade(sent(rows, labels))
    for label, name in enumerate(("norm_negative", "norm_positive")):
        norms = []
        for each, targets in zip(rows, labels, strict=True):
            length = np.linalg.norm(each.double().numpy(), axis=1)
            norms.extend((length / length.mean())[targets.numpy() == label])
        counts, _ = np.histogram(np.log10(norms), bins=BINS, range=(LOWEST, HIGHEST))
        assert found[name].each == tuple(counts)
        assert found[name].n == len(norms)
        assert found[name].value == pytest.approx(np.sort(norms)[(len(norms) - 1) // 2])


def test_it_says_nothing_about_leakage_and_little_in_all(sent):
    found = grade(sent([torch.randn(1000, 4)], [torch.arange(1000) % 2]))
    assert list(found) == ["norm_negative", "norm_positive"]
    assert all(reading.leaks is None and len(reading.each) == BINS for reading in found.values())
    assert NormHistogram() in standard()


def test_longer_positives_show(sent):
    labels = torch.tensor([0] * 90 + [1] * 10)
    found = grade(sent([torch.where(labels[:, None] == 1, 9.0, 1.0) * torch.ones(100, 3)], [labels]))
    assert found["norm_positive"].value == pytest.approx(9 * found["norm_negative"].value)
    assert max(found["norm_positive"].each) == 10


def test_one_class_alone_gives_one_reading(sent):
    assert list(grade(sent([torch.ones(4, 2)], [torch.ones(4, dtype=torch.long)]))) == ["norm_positive"]


@pytest.mark.parametrize(
    "settings",
    [{"kind": Kind.GRADIENT}, {"classes": 10}, {"rows": [torch.zeros(4, 2)]}],
    ids=["kind", "classes", "zeros"],
)
def test_other_messages_have_no_reading(sent, settings):
    settings = {"rows": [torch.ones(4, 2)], "labels": [torch.tensor([0, 1, 0, 1])], **settings}
    assert grade(sent(**settings)) == {}


@given(st.lists(st.floats(0, 1e30, allow_nan=False), min_size=1, max_size=50))
def test_every_norm_falls_in_exactly_one_bin(norms):
    counts = histogram(torch.tensor(norms, dtype=torch.float64))
    assert len(counts) == BINS
    assert int(counts.sum()) == len(norms)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e15])
def test_the_scale_of_a_step_does_not_matter(scale):
    rows = torch.tensor([[3.0, 4.0], [0.0, 15.0], [0.0, 0.0]])
    assert relative(scale * rows).tolist() == pytest.approx([0.75, 2.25, 0.0])
