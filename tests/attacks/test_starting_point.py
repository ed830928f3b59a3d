"""Starting points: what public examples of a class look like, and patterns."""

import pytest
import torch

from leaktight.attacks.starting_point import class_means, initial_points
from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.core.task import Batch


@pytest.fixture
def public():
    generator = torch.Generator().manual_seed(0)
    return Batch(torch.rand(12, 3, 4, 5, generator=generator), torch.tensor([0, 1, 2] * 4))


def test_the_first_start_is_the_mean_of_the_label_and_the_others_are_examples_of_it(public):
    labels = torch.tensor([[2, 0], [1, 1]])
    starts = class_means(public, labels, 3, stream(0))
    assert starts.shape == (6, 2, 3, 4, 5)
    for victim, row in enumerate(labels.tolist()):
        for place, label in enumerate(row):
            own = public.inputs[public.labels == label]
            mean, *others = starts[3 * victim : 3 * victim + 3, place]
            assert torch.equal(mean, own.mean(0))
            assert all(any(torch.equal(other, one) for one in own) for other in others)


def test_a_label_without_public_examples_starts_at_the_mean_of_all(public):
    start = class_means(public, torch.tensor([[7]]), 1, stream(0))
    assert torch.equal(start[0, 0], public.inputs.mean(0))


def test_draws_follow_the_stream_and_the_public_examples_are_left_alone(public):
    before, labels = public.copy(), torch.tensor([[0], [1], [2]])
    one, same, other = (class_means(public, labels, 8, stream(seed)) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(public.inputs, before.inputs)


def test_a_shape_alone_makes_no_class_mean():
    with pytest.raises(InvalidValue, match=r"must be made from more than a shape. Got nothing else"):
        initial_points("class_means", 1, (3, 4, 5), stream(0))
