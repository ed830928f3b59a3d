"""Optimisers and loaders say how a message is made, and what they do not say stays unknown."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from leaktight.captures.training import read_loader, read_optimiser

WEIGHTS = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))]


@pytest.mark.parametrize(
    ("optimiser", "kind"),
    [
        (torch.optim.SGD(WEIGHTS, lr=0.1), "sgd"),
        (torch.optim.SGD(WEIGHTS, lr=0.1, momentum=0.9, nesterov=True), "sgd-unusual"),
        (torch.optim.SGD(WEIGHTS, lr=0.1, momentum=0.9, dampening=0.5), "sgd-unusual"),
        (torch.optim.Adam(WEIGHTS, lr=0.1), "adam"),
        (torch.optim.Adam(WEIGHTS, lr=0.1, betas=(0.5, 0.9)), "adam-unusual"),
        (torch.optim.AdamW(WEIGHTS, lr=0.1), "adamw"),
        (torch.optim.RMSprop(WEIGHTS, lr=0.1), "rmsprop"),
    ],
)
def test_an_optimiser_is_named_with_its_learning_rate(optimiser, kind):
    read = read_optimiser(optimiser)
    assert (read["optimiser"], read["learning_rate"]) == (kind, 0.1)


def test_what_differs_among_groups_stays_unknown():
    groups = [{"params": WEIGHTS[:1], "weight_decay": 0.1}, {"params": WEIGHTS[1:]}]
    read = read_optimiser(torch.optim.SGD(groups, lr=0.1))
    assert "weight_decay" not in read
    assert read["momentum"] == 0


class Normalize:
    """As torchvision calls it."""

    mean, std = (0.5,), torch.tensor([0.25])


class Compose:
    transforms = (object(), Normalize())


class Images(Dataset):
    transform = Compose()

    def __len__(self):
        return 10

    def __getitem__(self, place):
        raise AssertionError("no example is looked at")


def test_a_normalisation_among_the_transforms_is_found_without_an_example():
    read = read_loader(DataLoader(Subset(Images(), range(6)), batch_size=2))
    assert read == {"dataset_size": 6, "batch_size": 2, "mean": (0.5,), "std": (0.25,)}


def test_a_loader_that_says_nothing_leaves_everything_unknown():
    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(())

    assert read_loader(DataLoader(Endless(), batch_size=None)) == {}
