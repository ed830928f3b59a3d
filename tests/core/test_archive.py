"""Archives: what goes in comes out, in order; what is broken is one error."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.archive import pack, unpack
from leaktight.core.errors import LeaktightError


def test_names_keep_their_order_and_tensors_their_type():
    values = {"b": torch.arange(3), "a": 0.5, "c": torch.zeros(2, 0, dtype=torch.float64), "z": math.inf}
    found, about = unpack(pack(values, {"format": 3, "list": [1, "two"]}))
    assert list(found) == ["b", "a", "c", "z"]
    assert (found["a"], found["z"]) == (0.5, math.inf)
    assert torch.equal(found["b"], values["b"])
    assert found["c"].dtype == torch.float64
    assert tuple(found["c"].shape) == (2, 0)
    assert about == {"format": 3, "list": [1, "two"]}


def test_a_part_of_a_tensor_is_written_by_itself():
    whole = torch.arange(10.0)
    found, _ = unpack(pack({"one": whole[2:4], "other": whole[3:5]}, {}))
    assert found["one"].tolist() == [2, 3]
    assert found["other"].tolist() == [3, 4]


@given(st.binary(max_size=200))
def test_any_other_bytes_are_one_error(content):
    with pytest.raises(LeaktightError, match="It is not a whole archive"):
        unpack(content)


def test_a_cut_off_archive_is_one_error():
    content = pack({"weight": torch.ones(4), "step": 1.0}, {"format": 1})
    for length in range(0, len(content), 7):
        with pytest.raises(LeaktightError, match="It is not a whole archive"):
            unpack(content[:length])
