"""The account of DP-SGD: each way to choose a batch costs what it must, and repeated examples cost more."""

from __future__ import annotations

import math

import pytest
import torch
from opacus.accountants import RDPAccountant

from leaktight.core.local import Memory
from leaktight.core.sampling import KnownBatch, Piece, Poisson
from leaktight.defences.dp_account import budget_notes, count_step


def spent(memory: Memory, multiplier: float = 1.0, delta: float = 1e-5) -> float:
    return budget_notes(memory, "dp_sgd", multiplier, delta)["dp_sgd.epsilon"]


def by_opacus(*steps: tuple[float, float], delta: float = 1e-5) -> float:
    opacus = RDPAccountant()
    for rate, multiplier in steps:
        opacus.step(noise_multiplier=multiplier, sample_rate=rate)
    return float(opacus.get_epsilon(delta))


def test_shuffled_passes_count_each_once_and_not_as_if_they_were_sampled() -> None:
    """Five passes in 260 batches: 0.89 if they were sampled, 10.2 if batches are known."""
    memory: Memory = {}
    for number in range(5):
        order = torch.randperm(260, generator=torch.Generator().manual_seed(number))
        for position in order:
            count_step(memory, KnownBatch(position[None]), 1.1, 260)
    assert by_opacus(*[(1 / 260, 1.1)] * 1300) == pytest.approx(0.89, abs=0.005)
    assert spent(memory, 1.1) == pytest.approx(10.2, abs=0.005)
    notes = budget_notes(memory, "dp_sgd", 1.1, 1e-5)
    assert notes["dp_sgd.participations"] == 5
    assert "dp_sgd.sample_rate" not in notes


def test_one_example_that_fills_batches_costs_what_it_does_in_the_worst_case() -> None:
    """Ten batches of 32 times the same example: 6.23 if they were sampled at 0.22, 5,551 is the worst case."""
    memory: Memory = {}
    for _ in range(10):
        count_step(memory, KnownBatch(torch.full((32,), 3)), 1.0, 145)
    assert by_opacus(*[(32 / 145, 1.0)] * 10) == pytest.approx(6.2, abs=0.1)
    assert spent(memory) == pytest.approx(5551, abs=1)
    assert budget_notes(memory, "dp_sgd", 1.0, 1e-5)["dp_sgd.repeats"] == 32


def test_the_example_that_took_part_in_most_steps_counts() -> None:
    memory: Memory = {}
    for positions in ([0, 1], [0, 2], [0, 3, 3]):
        count_step(memory, KnownBatch(torch.tensor(positions)), 1.0, 4)
    notes = budget_notes(memory, "dp_sgd", 1.0, 1e-5)
    assert notes["dp_sgd.participations"] == 4  # example 3, twice in one batch, is ahead of example 0 with three
    assert notes["dp_sgd.repeats"] == 2
    assert spent(memory) == pytest.approx(9.9972, abs=1e-3)


def test_pieces_of_a_pass_count_once() -> None:
    pieces: Memory = {}
    once: Memory = {}
    for first in (True, False, False, True, False):
        count_step(pieces, Piece(first), 2.0, 100)
    for _ in range(2):
        count_step(once, None, 2.0, 100)
    assert spent(pieces, 2.0) == spent(once, 2.0)


def test_steps_of_different_kinds_add_up() -> None:
    memory: Memory = {}
    for _ in range(50):
        count_step(memory, Poisson(0.1, 10), 1.0, 100)
    count_step(memory, KnownBatch(torch.arange(10)), 1.0, 100)
    count_step(memory, None, 1.0, 100)
    assert spent(memory) == pytest.approx(by_opacus(*[(0.1, 1.0)] * 50, (1.0, 1.0), (1.0, 1.0)), rel=1e-9)
    assert spent(memory) == pytest.approx(9.3168, rel=1e-3)  # by dp-accounting, see test_accountant
    notes = budget_notes(memory, "dp_sgd", 1.0, 1e-5)
    assert (notes["dp_sgd.sample_rate"], notes["dp_sgd.participations"]) == (0.1, 2)


def test_the_largest_rate_is_noted() -> None:
    memory: Memory = {}
    for rate in (0.1, 0.3, 0.2):
        count_step(memory, Poisson(rate, 10), 1.0, 100)
    assert budget_notes(memory, "dp_sgd", 1.0, 1e-5)["dp_sgd.sample_rate"] == 0.3


def test_a_party_that_gets_more_examples_keeps_its_account() -> None:
    memory: Memory = {}
    count_step(memory, KnownBatch(torch.tensor([0])), 1.0, 2)
    count_step(memory, KnownBatch(torch.tensor([0, 4])), 1.0, 5)
    assert memory["taken"].tolist() == [2, 0, 0, 0, 1]


def test_without_noise_nothing_is_promised() -> None:
    for sampling in (None, KnownBatch(torch.tensor([0])), Poisson(0.5, 1)):
        memory: Memory = {}
        count_step(memory, sampling, 0.0, 2)
        assert spent(memory, 0.0) == math.inf


def test_nothing_done_is_nothing_noted() -> None:
    assert budget_notes({}, "dp_sgd", 1.0, 1e-5) == {}
