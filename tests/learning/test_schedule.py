"""Schedules: which examples are in the batch of a step."""

import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch
from leaktight.learning.schedule import ByProperty, Shuffled


def owned(with_property=20, without=30) -> Batch:
    count = with_property + without
    properties = torch.tensor([1] * with_property + [0] * without)
    return Batch(torch.arange(count).float()[:, None], torch.zeros(count).long(), properties)


def held(schedule, data, steps, size=8) -> list[int]:
    """How many of each step's batch have the property."""
    batches = [data.take(schedule.positions(data, step, step, size, 0, "client-0")) for step in range(steps)]
    assert all(len(batch) == size for batch in batches)
    return [int(batch.properties.sum()) for batch in batches]


@pytest.mark.parametrize("every", [2, 5])
def test_one_of_every_few_batches_is_pure(every):
    counts = held(ByProperty(every=every), owned(), 20 * every)
    for block in range(20):
        assert sorted(counts[block * every : (block + 1) * every]) == [0] * (every - 1) + [8]
    places = {counts[block * every : (block + 1) * every].index(8) for block in range(20)}
    assert len(places) > 1  # nobody can tell from the number of the step


def test_a_share_of_the_batch_is_a_share():
    assert set(held(ByProperty(share=0.5), owned(), 20)) == {0, 4}
    assert set(held(ByProperty(share=0.01), owned(), 20)) == {0, 1}


def test_steps_are_drawn_anew_and_follow_from_the_seed():
    data, schedule = owned(), ByProperty()
    first, other = (schedule.positions(data, step, step, 8, 0, "client-0").tolist() for step in (0, 2))
    assert first != other
    assert schedule.positions(data, 0, 0, 8, 0, "client-0").tolist() == first
    assert schedule.positions(data, 0, 0, 8, 1, "client-0").tolist() != first
    assert len(set(first)) == 8


def test_too_few_of_a_kind_occur_twice_and_none_means_never():
    assert set(held(ByProperty(), owned(with_property=3), 10)) == {0, 8}
    assert set(held(ByProperty(), owned(with_property=0), 10)) == {0}
    assert set(held(ByProperty(), owned(without=0), 10)) == {8}


def test_data_without_property_are_refused():
    with pytest.raises(InvalidValue, match="needs data with a private property"):
        ByProperty().positions(Batch(torch.zeros(4, 1), torch.zeros(4)), 0, 0, 2, 0, "client-0")


def test_shuffled_passes_over_everything_before_it_starts_again():
    data = owned(4, 4)
    passed = torch.cat([Shuffled().positions(data, 0, step, 2, 0, "client-0") for step in range(4)])
    assert sorted(passed.tolist()) == list(range(8))


def test_all_steps_behind_one_message_are_alike():
    data, schedule = owned(), ByProperty()
    for number in range(6):
        steps = [data.take(schedule.positions(data, number, 4 * number + at, 8, 0, "client-0")) for at in range(4)]
        assert len({int(batch.properties.sum()) for batch in steps}) == 1
        assert len({tuple(batch.inputs.flatten().tolist()) for batch in steps}) == 4


def test_matched_batches_have_labels_alike():
    """Among all, the property goes along with label 1; label 2 only some without it have."""
    labels = torch.tensor([1] * 30 + [0] * 10 + [1] * 10 + [0] * 30 + [2] * 10)
    data = Batch(torch.zeros(90, 1), labels, torch.tensor([1] * 40 + [0] * 50))
    for matched in (True, False):
        schedule, shares = ByProperty(matched=matched), {True: [], False: []}
        for step in range(60):
            batch = data.take(schedule.positions(data, step, step, 16, 0, "client-0"))
            assert int(batch.properties.sum()) in (0, 16)
            shares[bool(batch.properties.any())].append((batch.labels == 1).double().mean().item())
            assert not (matched and (batch.labels == 2).any())
        gap = abs(sum(shares[True]) / len(shares[True]) - sum(shares[False]) / len(shares[False]))
        assert (gap < 0.1) is matched


def test_labels_that_only_one_kind_has_cannot_be_matched():
    data = Batch(torch.zeros(4, 1), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1]))
    with pytest.raises(InvalidValue, match="need a label that occurs with the private property and without"):
        ByProperty(matched=True).positions(data, 0, 0, 2, 0, "client-0")
