"""Objects in memory: one audit of a name at a time, and what worker processes can be sent."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from torch import nn

from leaktight.core import in_memory
from leaktight.core.errors import InvalidValue

PLACE = ("model", "Net")


def test_a_name_stands_for_one_object_at_a_time():
    with in_memory.hold({PLACE: 1}):
        sentence = "An audit of `Net` is running in this process already"
        with pytest.raises(InvalidValue, match=sentence), in_memory.hold({PLACE: 2}):
            pass
        assert in_memory.find(*PLACE, int).content == 1
    with pytest.raises(InvalidValue, match="The model `Net` was in the memory of a program and is not here"):
        in_memory.find(*PLACE, int)


def test_an_error_in_the_block_lets_go():
    with pytest.raises(ZeroDivisionError), in_memory.hold({PLACE: 1}):
        raise ZeroDivisionError
    with in_memory.hold({PLACE: 1}):
        pass


def test_worker_processes_get_what_is_held():
    assert in_memory.decode(in_memory.encode()) == {}
    with in_memory.hold({PLACE: nn.Linear(2, 2)}):
        sent = in_memory.decode(in_memory.encode())
        assert sent[PLACE].weight.equal(in_memory.find(*PLACE, nn.Linear).content.weight)


def test_what_cannot_be_sent_is_refused_with_the_way_out(monkeypatch):
    class Local(nn.Linear):
        pass

    advice = r"cannot be sent to worker processes: .*\. Use `workers=1`, or define its class in a module"
    with in_memory.hold({PLACE: Local(2, 2)}), pytest.raises(InvalidValue, match=advice):
        in_memory.encode()
    typed = ModuleType("__main__")
    typed.Typed = type("Typed", (nn.Linear,), {"__module__": "__main__"})
    monkeypatch.setitem(sys.modules, "__main__", typed)
    with in_memory.hold({PLACE: typed.Typed(2, 2)}), pytest.raises(InvalidValue, match="its class was typed here"):
        in_memory.encode()
