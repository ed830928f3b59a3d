"""Sketches keep inner products of directions, and tell which entries came."""

import torch

from leaktight.attacks.message_sketch import Sketch
from leaktight.core.random import stream


def messages(rows=6, entries=5000):
    return {
        "weight": torch.randn(rows, entries // 100, 100, generator=stream(1)),
        "bias": torch.randn(rows, generator=stream(2)),
    }


def test_inner_products_of_short_sketches_are_about_those_of_the_messages():
    sent = messages()
    exact, rough = (Sketch(("weight", "bias"), 0, width)(sent).chunk(2, 1)[0] for width in (10_000, 2000))
    assert (exact.shape[1], rough.shape[1]) == (5001, 2000)
    assert (exact @ exact.T - rough @ rough.T).abs().max() < 5 / 2000**0.5


def test_a_sketch_does_not_depend_on_the_size_of_a_message_or_on_which_others_are_made_with_it():
    sent = messages()
    sketch = Sketch(("weight", "bias"), 7, 64)
    torch.testing.assert_close(sketch({name: 1e-25 * tensor for name, tensor in sent.items()}), sketch(sent))
    torch.testing.assert_close(sketch({name: tensor[2:3] for name, tensor in sent.items()}), sketch(sent)[2:3])


def test_the_second_half_tells_which_entries_came():
    sparse = {"weight": torch.tensor([[0.0, 5.0, 0.0, 1.0], [0.0, -1.0, 0.0, 9.0]])}
    values, places = Sketch(("weight",), 0)(sparse).chunk(2, 1)
    assert torch.equal(places[0], places[1])
    assert not torch.equal(values[0], values[1])


def test_a_message_of_zeros_or_of_no_numbers_is_a_sketch_of_zeros():
    found = Sketch(("weight",), 0)({"weight": torch.tensor([[0.0, 0.0], [torch.nan, torch.inf]])})
    assert torch.equal(found, torch.zeros(2, 4))
