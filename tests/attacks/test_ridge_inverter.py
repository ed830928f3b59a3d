"""A ridge regression learns linear maps, those of each label, and answers the class mean where there is nothing to learn."""

import pytest
import torch
import torch.nn.functional as F

from leaktight.attacks.ridge_inverter import KnownMessages, RidgeInverter
from leaktight.core.random import stream

CLASSES, NUMBERS, WIDTH = 3, 4, 24
MEANS = torch.full((CLASSES, NUMBERS), 0.5)


def lessons(count=300, examples=1, seed=0, content=1.0):
    """Return messages that are the sum of what each example sends: its label, and a map of it that is the label's own."""
    maps = torch.randn(CLASSES, NUMBERS, WIDTH, generator=stream(9))
    rng = stream(seed)
    inputs = torch.rand(count, examples, NUMBERS, generator=rng)
    labels = torch.randint(CLASSES, (count, examples), generator=rng)
    marks = 3 * F.one_hot(labels, CLASSES).float() @ torch.randn(CLASSES, WIDTH, generator=stream(8))
    sent = content * torch.einsum("men,menw->mew", inputs, maps[labels]) + marks
    return KnownMessages(sent.mean(1), inputs, labels)


@pytest.mark.parametrize("examples", [1, 2])
def test_examples_and_labels_come_back_by_rising_label(examples):
    inverter = RidgeInverter(lessons(600, examples), MEANS, held_out=100)
    victims = lessons(40, examples, seed=5)
    inputs, labels = inverter.answer(victims.rows, examples)
    assert (labels == victims.labels.sort(1).values).float().mean() > 0.95
    different = (victims.labels.sort(1).values.diff(dim=1) != 0).all(1)
    order = victims.labels.argsort(dim=1, stable=True)
    wanted = victims.inputs.take_along_dim(order[..., None], 1)[different]
    error, blind = ((each - wanted).square().mean() for each in (inputs[different], MEANS[0]))
    assert error < (0.01 if examples == 1 else 0.5) * blind


def test_of_examples_with_one_label_the_mean_is_answered():
    inverter = RidgeInverter(lessons(600, 2), MEANS, held_out=100)
    victims = lessons(100, 2, seed=5)
    same = victims.labels[:, 0] == victims.labels[:, 1]
    inputs, labels = inverter.answer(victims.rows[same], 2)
    right = (labels == victims.labels[same]).all(1)
    assert right.any()
    assert torch.equal(inputs[right][:, 0], inputs[right][:, 1])
    wanted = victims.inputs[same][right].mean(1)
    error, blind = ((each - wanted).square().mean() for each in (inputs[right][:, 0], MEANS[0]))
    assert error < 0.5 * blind


def test_where_messages_tell_labels_alone_class_means_are_answered():
    inverter = RidgeInverter(lessons(300, content=0.0), MEANS, held_out=60)
    victims = lessons(20, seed=5, content=0.0)
    inputs, labels = inverter.answer(victims.rows, 1)
    assert torch.equal(labels, victims.labels)
    assert (inputs - MEANS[0]).square().mean() < 0.1 * victims.inputs.var()


def test_settings_are_chosen_by_messages_that_were_not_learned_from():
    """Labels of no use are not listened to: with labels at random, messages of other labels count as much."""
    known = lessons(300)
    assert RidgeInverter(known, MEANS, held_out=60)._own_class > 0
    shared = torch.randn(NUMBERS, WIDTH, generator=stream(4))
    blurred = KnownMessages(
        known.inputs[:, 0] @ shared + torch.randn(300, WIDTH, generator=stream(6)), known.inputs, known.labels
    )
    assert RidgeInverter(blurred, MEANS, held_out=60)._own_class == 0


def test_where_messages_tell_nothing_the_mean_of_all_is_answered():
    blank = lessons(300)
    noise = KnownMessages(torch.randn(300, WIDTH, generator=stream(7)), blank.inputs, blank.labels)
    means = torch.rand(CLASSES, NUMBERS, generator=stream(3))
    inputs, _ = RidgeInverter(noise, means, held_out=60).answer(torch.randn(20, WIDTH, generator=stream(2)), 1)
    assert (inputs - blank.inputs.mean((0, 1))).square().mean() < 0.1 * blank.inputs.var()
