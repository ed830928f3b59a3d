"""Examples as a program has them: what is read of a loader, and what cannot be read."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, SubsetRandomSampler, TensorDataset

from leaktight.data import examples
from leaktight.data.examples import as_data

INPUTS, LABELS = torch.rand(20, 1, 4, 4), torch.arange(20) % 2
WHOLE = TensorDataset(INPUTS, LABELS)


class Pairs(Dataset):
    """A dataset whose examples a test chooses."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, at):
        item = self.items[at]
        if isinstance(item, Exception):
            raise item
        return item


class Drawn(Dataset):
    """A dataset that changes its examples at random, as augmentation does."""

    def __len__(self):
        return 10

    def __getitem__(self, at):
        return torch.rand(1, 4, 4), at % 2


def read(*given):
    return as_data(given if len(given) > 1 else given[0], "`mine`", "It must be")


def doubled(batch):
    inputs, labels = torch.utils.data.default_collate(batch)
    return inputs / 2, labels


def test_a_shuffled_loader_gives_the_same_data_each_time():
    first, second = (read(DataLoader(WHOLE, batch_size=3, shuffle=True)) for _ in range(2))
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert len(first.train) + len(first.test) == 20


def test_what_a_loader_leaves_out_or_changes_is_left_out_or_changed():
    half = read(DataLoader(WHOLE, batch_size=4, sampler=SubsetRandomSampler(range(10))))
    assert len(half.train) + len(half.test) == 10
    changed = read(DataLoader(WHOLE, batch_size=4, collate_fn=doubled))
    assert changed.train.inputs.max() <= 0.5
    batches = read(DataLoader(WHOLE, batch_sampler=[[0, 1, 2], [3, 4]]))
    assert len(batches.train) + len(batches.test) == 5


def test_random_examples_are_the_same_each_time_and_nobody_elses_draws_change():
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    first, second = read(Drawn()), read(Drawn())
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert torch.equal(torch.rand(2), expected)


def test_several_datasets_in_one_have_the_names_of_the_first():
    named = Pairs(*((torch.rand(1, 4, 4), at % 2) for at in range(6)))
    named.classes = ["no", "yes"]
    assert read(ConcatDataset([named, named])).names == ("no", "yes")


def test_columns_of_pandas_are_arrays():
    frame = pytest.importorskip("pandas").DataFrame({"a": np.arange(10.0), "b": 1.0, "y": [0, 1] * 5})
    data = read(frame[["a", "b"]], frame["y"])
    assert (data.shape, data.classes) == ((2,), 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Pairs((INPUTS[0], 0.5), (INPUTS[1], 1.0)), ("labels of `mine`", "whole numbers")),
        (Pairs((INPUTS[0], "cat"), (INPUTS[1], "dog")), ("labels of `mine`", "Got words", "number them from 0")),
        (Pairs((INPUTS[0], 0), ValueError("torn")), ("examples of `mine` cannot be read", "ValueError: torn")),
        (Pairs((INPUTS[0], 0, 1)), ("pairs of input and label", "Got (Tensor, int, int)")),
        (Pairs({"image": INPUTS[0]}), ("pairs of input and label", "Got dict")),
        (Pairs((INPUTS[0], LABELS[:1]), (INPUTS[1], LABELS[:2])), ("one label for each input",)),
        (Pairs(), ("pairs of input and label", "Got none")),
        ((INPUTS, LABELS[:, None].expand(20, 3)), ("labels of `mine`", "(20, 3)")),
        ((INPUTS[..., None], LABELS), ("inputs of `mine`", "3 or 4 for images")),
        ({"x": INPUTS}, ("It must be a pair (inputs, labels)", "Got dict")),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(given, words, says):
    with says(*words):
        as_data(given, "`mine`", "It must be")


def test_examples_that_fill_the_memory_are_refused(monkeypatch, says):
    monkeypatch.setattr(examples, "LARGEST", 100)
    with says("at most 100 bytes", "Subset(dataset, range(5000))"):
        read(Drawn())
