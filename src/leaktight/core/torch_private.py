"""What we use of torch's private modules.

They may change with any release: torch has an upper bound, and a test looks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.fx import GraphModule
from torch.fx.experimental import proxy_tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["TorchDispatchMode", "trace_graph"]
_NOTE = proxy_tensor.set_meta


def trace_graph(work: Callable[..., Any], *inputs: Any) -> GraphModule:
    """Return the tensor operations that some work does on these inputs, as one flat graph.

    Nothing is noted of the shapes of results, which nobody reads here: that alone took a third of the time.

    Example:
        >>> import torch
        >>> graph = trace_graph(lambda x: x.sin() + 1, torch.zeros(2))
        >>> graph(torch.zeros(2)), {key for node in graph.graph.nodes for key in node.meta} & {"val", "tensor_meta"}
        (tensor([1., 1.]), set())
    """
    with _without_shapes():
        graph: GraphModule = proxy_tensor.make_fx(work)(*inputs)
    return graph


@contextmanager
def _without_shapes() -> Iterator[None]:
    proxy_tensor.set_meta = lambda proxy, val: proxy
    try:
        yield
    finally:
        proxy_tensor.set_meta = _NOTE
