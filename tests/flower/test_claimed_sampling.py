"""What a person's own loader does, and what an account may make of it."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from leaktight.core.errors import InvalidValue
from leaktight.core.sampling import Piece, Poisson
from leaktight.flower.claimed_sampling import ClaimedSampling


def passes(sampling, sizes):
    return sum(sampling.next(size).first for size in sizes)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize(("count", "size"), [(6, 4), (10, 5), (10, 3), (7, 7), (5, 9), (100, 32)])
@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_no_pass_of_a_real_loader_goes_uncounted(count, size, drop, epochs):
    if drop and size > count:
        pytest.skip("a loader that drops everything has no batches")
    data = DataLoader(TensorDataset(torch.arange(count)), batch_size=size, shuffle=False, drop_last=drop)
    sizes = [len(batch) for _ in range(epochs) for (batch,) in data]
    assert passes(ClaimedSampling("passes", count), sizes) == epochs
    # One that was left in the middle of a pass counts it.
    assert passes(ClaimedSampling("passes", count), sizes[:1]) == 1


def test_what_each_setting_relies_on():
    assert ClaimedSampling("unknown", 10).next(5) is None
    assert ClaimedSampling("passes", 10).next(5) == Piece(first=True)
    sampled = ClaimedSampling("poisson", 10, batch_size=5)
    assert [sampled.next(size) for size in (0, 9)] == [Poisson(0.5, 5)] * 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sampling": "shuffled"}, "must be one of unknown, passes, poisson. Got 'shuffled' instead"),
        ({"sampling": "poisson"}, "needs its expected `batch_size`, from 1 to the 10 examples. Got None instead"),
        ({"sampling": "poisson", "batch_size": 11}, "from 1 to the 10 examples. Got 11 instead"),
        ({"sampling": "poisson", "batch_size": 0}, "from 1 to the 10 examples. Got 0 instead"),
        ({"sampling": "passes", "batch_size": 5}, "for `sampling` by poisson alone. Got 5 with passes; leave it out"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(settings, sentence):
    with pytest.raises(InvalidValue) as error:
        ClaimedSampling(**{"examples": 10, **settings})
    assert sentence in str(error.value)
