"""Rows of the split benchmark: two parties in one process against plain PyTorch on the same network unsplit."""

from __future__ import annotations

import copy
import itertools
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from _rows import Row
from torch import Tensor

from leaktight.core.draws import PublicSeed
from leaktight.core.local import Local
from leaktight.core.random import stream
from leaktight.data import Columns
from leaktight.learning import BatchOrder, FeatureParty, LabelParty
from leaktight.models import Halves, WideDeep, halves

NUMBERS, WORDS, BUCKETS = 13, 26, 1000


def training_rows(repeats: int) -> list[Row]:
    """Measure steps of both in turn, on the same rows in the same order; the median of each counts."""
    rows = []
    for batch, steps in ((256, 40), (4096, 5), (65_536, 1)):
        both = dict(zip(("split", "joint"), _steps(batch), strict=True))
        spent: dict[str, list[float]] = {name: [] for name in both}
        # The first round warms both up.
        for number in range(repeats + 1):
            for name, step in both.items():
                seconds = _seconds(step, steps)
                if number:
                    spent[name].append(seconds / steps)
        split, joint = (statistics.median(spent[name]) for name in ("split", "joint"))
        rows.append(Row(f"two parties, batches of {batch}", 1 / split, "steps/s"))
        rows.append(Row(f"two parties against a joint loop, batches of {batch}", joint / split, "x", 0.8))
    return rows


def _seconds(work: Callable[[], None], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return time.perf_counter() - start


class TwoParties(NamedTuple):
    """Two parties of Wide & Deep with rows like Criteo's, and what they were made from."""

    feature: FeatureParty
    label: LabelParty
    halves: Halves
    rows: Tensor
    numbers: Tensor
    labels: Tensor


def two_parties(batch: int) -> TwoParties:
    """Return two parties with rows for two batches."""
    columns = Columns(tuple(map(str, range(NUMBERS + WORDS))), (0,) * NUMBERS + (BUCKETS + 1,) * WORDS)
    rng, count = stream(0, "rows"), 2 * batch
    numbers = torch.randn(count, NUMBERS, generator=rng)
    ids = torch.randint(0, BUCKETS + 1, (count, WORDS), generator=rng)
    rows, labels = torch.cat([numbers, ids], 1), (torch.rand(count, generator=rng) < 0.25).long()
    both = halves(WideDeep(), columns, 2, PublicSeed(0), own=columns.take(range(NUMBERS)))
    feature = FeatureParty(both.bottom, rows, BatchOrder(count, batch, 0), Local("feature-party", 0))
    label = LabelParty(both.top, labels, BatchOrder(count, batch, 0), Local("label-party", 0), both.shape, numbers)
    return TwoParties(feature, label, both, rows, numbers, labels)


def _steps(batch: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return one training step of two parties and one of a joint loop, both from the same weights."""
    both = two_parties(batch)
    whole, rows, numbers, labels = copy.deepcopy(both.halves), both.rows, both.numbers, both.labels
    feature, label = both.feature, both.label
    optimiser = torch.optim.Adam([*whole.bottom.parameters(), *whole.top.parameters()], 1e-3)
    order, steps, message = BatchOrder(len(rows), batch, 0), itertools.count(), [feature.respond(label.opening())]

    def split() -> None:
        message[0] = feature.respond(label.respond(message[0]))

    def joint() -> None:
        index = order.at(next(steps))
        loss = F.cross_entropy(whole.top(whole.bottom(rows[index]), numbers[index]), labels[index])
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()

    return split, joint
