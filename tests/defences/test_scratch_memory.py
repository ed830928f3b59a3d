"""Room: of the kind that was asked for, and nobody else's."""

from __future__ import annotations

import pytest
import torch

from leaktight.defences.scratch_memory import scratch


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_room_has_shape_type_and_device_of_what_it_is_for(kind: torch.dtype) -> None:
    found = scratch((3, 4), torch.zeros(2, dtype=kind))
    assert (found.shape, found.dtype, found.device.type) == ((3, 4), kind, "cpu")
    assert scratch((3,), torch.zeros(1, dtype=kind, device="meta")).device.type == "meta"


def test_rooms_do_not_overlap_and_can_be_written_to() -> None:
    one, other = scratch((1000,), torch.zeros(1)), scratch((1000,), torch.zeros(1))
    one.fill_(1)
    other.fill_(2)
    assert one.sum() == 1000
