import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.metrics.pairing import arrange, arrange_all, blank, pair

SHAPES = [(3, 4, 4), (1, 5, 3), (2, 3), (7,), (1,)]


def rand(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def total(guess, truth, order):
    return sum(
        (guess[g].double() - truth[t].double()).square().sum().item() for t, g in enumerate(order) if g is not None
    )


def brute_force(guess, truth):
    """The least total over every one-to-one pairing that leaves no guess unused."""
    candidates = list(range(min(len(guess), len(truth))))
    slots = candidates + [None] * (len(truth) - len(candidates))
    return min(total(guess, truth, order) for order in set(itertools.permutations(slots)))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 5), st.integers(1, 5), st.sampled_from(SHAPES), st.integers(0, 10_000))
def test_pairing_is_the_best_of_all_pairings(guesses, truths, shape, seed):
    guess, truth = rand(guesses, *shape, seed=seed), rand(truths, *shape, seed=seed + 1)
    positions = [None if position < 0 else position for position in pair(guess, truth).tolist()]
    used = [position for position in positions if position is not None]
    assert len(set(used)) == len(used) == min(guesses, truths)
    assert total(guess, truth, positions) == pytest.approx(brute_force(guess, truth), abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shuffled_batch_is_put_back_in_order(shape):
    truth = rand(9, *shape)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(3))
    assert torch.equal(arrange(truth[order], truth), truth.double())
    assert torch.equal(order[pair(truth[order], truth)], torch.arange(9))


def test_near_duplicates_of_a_large_batch_keep_their_own_guess():
    """Distances from matrix products would lose these differences among large numbers."""
    truth = 1000 + 1e-6 * torch.arange(40, dtype=torch.float64).view(-1, 1).expand(-1, 8)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(3))
    assert torch.equal(arrange(truth[order], truth), truth)


def test_surplus_guesses_do_not_help():
    truth = rand(2, 3, 4, 4)
    wrong = torch.zeros(2, 3, 4, 4)
    assert torch.equal(arrange(torch.cat([wrong, truth]), truth), wrong.double())
    assert torch.equal(arrange(torch.cat([truth, wrong]), truth), truth.double())


@pytest.mark.parametrize(("shape", "answer"), [((1, 2, 2), 0.5), ((6,), 0.0), ((2, 3), 0.0)])
def test_a_truth_without_a_guess_gets_the_blank_answer(shape, answer):
    truth = rand(3, *shape)
    arranged = arrange(truth[1:2], truth)
    assert torch.equal(arranged[1], truth[1].double())
    assert torch.equal(arranged[[0, 2]], torch.full((2, *shape), answer, dtype=torch.float64))
    assert torch.equal(arrange(truth[:0], truth), blank(truth).double())


def test_messages_are_paired_apart_and_numbered_in_order():
    truths = [rand(2, 4, seed=1), rand(0, 4), rand(3, 4, seed=2)]
    guesses = [truths[0].flip(0), rand(0, 4), truths[2].roll(1, 0)]
    guess, truth, messages = arrange_all(guesses, truths)
    assert torch.equal(guess, truth)
    assert torch.equal(truth, torch.cat(truths).double())
    assert messages.tolist() == [0, 0, 2, 2, 2]
    with pytest.raises(ValueError, match="zip"):
        arrange_all(guesses[:2], truths)


def test_another_shape_is_an_error_in_words():
    with pytest.raises(
        InvalidValue, match=r"must have the shape \(3, 4, 4\) of the true ones. Got \(1, 4, 4\) instead"
    ):
        pair(rand(1, 1, 4, 4), rand(1, 3, 4, 4))


def test_inputs_stay_as_they_are():
    guess, truth = rand(4, 3, 4, 4), rand(5, 3, 4, 4, seed=1)
    before = guess.clone(), truth.clone()
    arrange(guess.requires_grad_(), truth)[0].zero_()
    assert torch.equal(guess, before[0])
    assert torch.equal(truth, before[1])
    double = truth.double()
    arrange(double, double).zero_()
    assert torch.equal(double, truth.double())
