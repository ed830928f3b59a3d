"""Layout: packing loses nothing, whatever the shapes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.attacks.objective import Layout
from leaktight.core.torch_private import trace_graph

shapes = st.dictionaries(
    st.text("abc", min_size=1), st.lists(st.integers(1, 3), max_size=3).map(tuple), min_size=1, max_size=5
)


@settings(max_examples=50, deadline=None)
@given(shapes, st.integers(1, 4))
def test_unpacking_undoes_packing(named, rows):
    layout = Layout(named)
    generator = torch.Generator().manual_seed(0)
    unknowns = {
        name: torch.randn(rows, math.prod(shape), generator=generator).view(rows, *shape)
        for name, shape in named.items()
    }
    points = layout.pack(unknowns)
    assert points.shape == (rows, layout.width)
    found = layout.unpack(points)
    assert list(found) == list(named)
    assert all(torch.equal(found[name], unknowns[name]) for name in named)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_unpacking_keeps_leading_dimensions(leading):
    layout = Layout({"pixels": (2, 1, 2, 2), "scalar": ()})
    points = torch.arange(9.0).expand(*leading, 9)
    found = layout.unpack(points)
    assert found["pixels"].shape == (*leading, 2, 1, 2, 2)
    assert found["scalar"].shape == leading
    assert (found["scalar"] == 8).all()


def test_a_single_unknown_costs_no_copy_in_a_traced_graph():
    layout = Layout({"pixels": (3, 2)})
    graph = trace_graph(lambda points: layout.unpack(points)["pixels"].square().sum(), torch.randn(6))
    names = {str(node.target) for node in graph.graph.nodes if node.op == "call_function"}
    assert not any("copy" in name or "clone" in name or "cat" in name for name in names)
