"""What we use of torch's private modules.

They may change with any release: torch has an upper bound, and a test looks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental import proxy_tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["TorchDispatchMode", "embedding_bag_slopes", "trace_graph"]
_NOTE = proxy_tensor.set_meta


def trace_graph(work: Callable[..., Any], *inputs: Any) -> GraphModule:
    """Return the tensor operations that some work does on these inputs, as one flat graph.

    Nothing is noted of the shapes of results, which nobody reads here: that alone took a third of the time. Code is
    made of the graph when it first runs, so that a change of it before costs nothing.

    Example:
        >>> import torch
        >>> graph = trace_graph(lambda x: x.sin() + 1, torch.zeros(2))
        >>> graph(torch.zeros(2)), {key for node in graph.graph.nodes for key in node.meta} & {"val", "tensor_meta"}
        (tensor([1., 1.]), set())
    """
    with _without_shapes(), _use_lazy_graph_module(True):
        graph: GraphModule = proxy_tensor.make_fx(work)(*inputs)
    return graph


def embedding_bag_slopes(gradients: Tensor, vectors: Tensor, places: Tensor, starts: Tensor, owners: Tensor) -> Tensor:
    """Return the derivative of embedding bags by the weights of their sums.

    Args:
        gradients: those of each bag's sum, (bags, width).
        vectors: (vectors, width).
        places: which vector each place of the bags holds.
        starts: where each bag begins.
        owners: the bag of each place.
    """
    slopes: Tensor = torch.ops.aten._embedding_bag_per_sample_weights_backward(
        gradients, vectors, places, starts, owners, 0
    )
    return slopes


@contextmanager
def _without_shapes() -> Iterator[None]:
    proxy_tensor.set_meta = lambda proxy, val: proxy
    try:
        yield
    finally:
        proxy_tensor.set_meta = _NOTE
