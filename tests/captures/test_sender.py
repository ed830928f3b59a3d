"""A gradient counts as vanished if it is faint, or fades on its way to the first layer; not if entries were left out."""

import pytest
import torch
from torch import nn

from leaktight.captures.sender import has_vanished
from leaktight.captures.task import task_of
from leaktight.core.message import Kind, Message

TASK = task_of(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), (4,), 2)
ASKED = Message(
    Kind.PARAMETERS, "server", "a", 0, {name: torch.ones_like(t) for name, t in TASK.public_parameters().items()}
)


def sent(first, last):
    return Message(
        Kind.GRADIENT,
        "a",
        "server",
        0,
        {name: torch.full_like(t, first if name.startswith("0") else last) for name, t in ASKED.tensors.items()},
    )


@pytest.mark.parametrize(
    ("first", "last", "gone"), [(0.1, 0.1, False), (1e-7, 1e-7, True), (1e-6, 0.1, True), (1e-3, 1.0, False)]
)
def test_sizes_decide(first, last, gone):
    assert has_vanished(TASK, ASKED, sent(first, last)) is gone


def test_entries_that_were_left_out_do_not_count():
    assert not has_vanished(TASK, ASKED, sent(0.0, 0.1))
    some = sent(0.1, 0.1)
    some.tensors["0.weight"][1:] = 0
    assert not has_vanished(TASK, ASKED, some)
    assert not has_vanished(TASK, ASKED, sent(0.0, 0.0))
