"""Gradients of many batches at once: an example passes the network once, however many batches it is in."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.grad import conv2d_weight
from torch.utils.hooks import RemovableHandle

from leaktight.core.message import Tensors
from leaktight.core.task import Batch, Task
from leaktight.learning.gradient import gradient

# Bytes: what layers put out for the examples of one pass, what is kept of all examples, what is averaged at once, and
# gradients that are handed out at once. The last are few, so that they are still in the processor's cache for whoever
# takes them.
PASSED, KEPT, AVERAGED, HANDED = 2**26, 2**29, 2**25, 2**22
# Examples that a layer is tried on; and in how many batches an example must be, on average, to be worth its record.
_TRIED, _WORTH = 8, 1.5
# Torch does not say its type.
_kernel: Callable[..., Tensor] = conv2d_weight


def batch_gradients(task: Task, parameters: Tensors, pool: Batch, members: Tensor) -> Iterator[dict[str, Tensor]]:
    r"""Yield the gradient of every batch's mean loss, some batches at a time, by the model's own names.

    The gradient of a batch is the mean of its examples' gradients, and batches that are drawn from one pool share their
    examples. So each example is passed forward and backward once. Of a linear layer \(W a\) its input \(a_e\) and the
    slope \(s_e = \partial L_e / \partial W a_e\) are kept, and a batch B of n gets

    .. math:: \frac{\partial L_B}{\partial W} = \frac{1}{n} \sum_{e \in B} s_e a_e^T,

    one matrix product for each batch. Of everything else the gradient of each example is kept, and one matrix product
    averages it for many batches.

    A layer is treated so only if it is a plain `Linear` on rows or a plain `Conv2d`, is passed once, and gives on a few
    examples what autograd gives; every other parameter takes `torch.func`, example by example. Where records would take
    more than 512 MB, or hardly an example is in two batches, each batch takes a backward pass of its own.

    Args:
        task: what is learned. Where batch norm in training mode mixes the examples of a batch, each batch takes a
            backward pass of its own.
        parameters: every parameter of the task's model, by the model's own names.
        pool: the examples.
        members: a row of positions in the pool for each batch.

    Yields:
        Gradients of the next batches, stacked along the first dimension; as many as fit into 4 MB, at least one.

    Example:
        >>> from leaktight.learning import classification
        >>> from leaktight.models import MLP
        >>> task = classification(MLP().build((4,), classes=2, seed=0), (4,), 2)
        >>> pool = Batch(torch.rand(6, 4), torch.tensor([0, 1, 0, 1, 0, 1]))
        >>> [found] = batch_gradients(task, task.model.tensors(), pool, torch.tensor([[0, 1], [1, 2], [2, 0]]))
        >>> list(found)
        ['body.linear1.weight', 'body.linear1.bias', 'head.weight', 'head.bias']
        >>> [tuple(each.shape) for each in found.values()]
        [(3, 128, 4), (3, 128), (3, 2, 128), (3, 2)]
    """
    parameters = {name: tensor.detach() for name, tensor in parameters.items()}
    used, places = torch.unique(members.to(pool.labels.device), return_inverse=True)
    together = max(1, HANDED // sum(map(_bytes, parameters.values())))
    shared = places.numel() >= _WORTH * len(used) and not task.model.batch_norms()
    records = _collect(task, parameters, pool.take(used)) if shared else None
    if records is None:
        for rows in torch.split(used[places], together):
            each = [gradient(task, parameters, pool.take(row)).tensors for row in rows]
            yield {name: torch.stack([tensors[name] for tensors in each]) for name in parameters}
        return
    averaged = sum(_bytes(parameters[name]) for name, record in records.items() if isinstance(record, _Each))
    for rows in torch.split(places, max(together, AVERAGED // max(1, averaged))):
        ones = torch.full(rows.shape, 1 / rows.shape[1], device=rows.device)
        weights = ones.new_zeros(len(rows), len(used)).scatter_add_(1, rows, ones)
        means = {name: record.mean(weights) for name, record in records.items() if isinstance(record, _Each)}
        for start in range(0, len(rows), together):
            few = slice(start, start + together)
            products = {name: record.mean(rows[few]) for name, record in records.items() if isinstance(record, _Outer)}
            yield {name: products[name] if name in products else means[name][few] for name in parameters}


@dataclasses.dataclass(frozen=True)
class _Each:
    """One gradient for each example."""

    values: Tensor

    def mean(self, weights: Tensor) -> Tensor:
        """Return the mean for each batch, by the weight that each example has in it."""
        means = weights.to(self.values.dtype) @ self.values.reshape(len(self.values), -1)
        return means.view(len(weights), *self.values.shape[1:])

    def total(self) -> Tensor:
        """Return the sum over all examples."""
        return self.values.sum(0)


@dataclasses.dataclass(frozen=True)
class _Outer:
    """What a linear layer's gradients are outer products of, for each example."""

    slopes: Tensor
    inputs: Tensor

    def mean(self, rows: Tensor) -> Tensor:
        """Return the mean for each batch, by its examples."""
        return torch.bmm((self.slopes[rows] / rows.shape[1]).transpose(1, 2), self.inputs[rows])

    def total(self) -> Tensor:
        """Return the sum over all examples."""
        return self.slopes.T @ self.inputs


_Record = _Each | _Outer


def _collect(task: Task, parameters: Tensors, examples: Batch) -> dict[str, _Record] | None:
    """Return the record of every parameter; None if together they are too large."""
    trial = examples.take(torch.arange(min(_TRIED, len(examples)), device=examples.labels.device))
    layers, passed = _simple(task, parameters, trial)
    size_kept = sum(
        _bytes(tensor)
        for record in _records(task, parameters, layers, trial).values()
        for tensor in vars(record).values()
    )
    if size_kept * len(examples) > KEPT * len(trial):
        return None
    # A backward pass holds each output, its gradient, and about as much for what follows on it.
    size = max(1, PASSED * len(trial) // (3 * passed + size_kept))
    parts = [
        _records(task, parameters, layers, examples.take(places))
        for places in torch.split(torch.arange(len(examples), device=examples.labels.device), size)
    ]
    return {name: _join([part[name] for part in parts]) for name in parameters}


def _records(task: Task, parameters: Tensors, layers: Mapping[str, nn.Module], batch: Batch) -> dict[str, _Record]:
    """Return the record of every parameter for the examples of one pass."""
    records: dict[str, _Record] = {}
    with _Watch(layers) as watch:
        losses = task.loss(task.forward(parameters, batch.inputs), batch.labels)
    calls = {name: watch.calls[name][0] for name in layers}
    slopes = torch.autograd.grad(losses.sum(), [output for _, output in calls.values()]) if calls else ()
    for (name, (inputs, _)), slope in zip(calls.items(), slopes, strict=True):
        records |= _of_layer(name, layers[name], inputs, slope)
    rest = [name for name in parameters if name not in records]
    return records | (
        {name: _Each(each) for name, each in _rest(task, parameters, rest, batch).items()} if rest else {}
    )


def _of_layer(name: str, layer: nn.Module, inputs: Tensor, slopes: Tensor) -> dict[str, _Record]:
    """Return what is kept of a simple layer."""
    records: dict[str, _Record] = {}
    if isinstance(layer, nn.Conv2d):
        shape, how = layer.weight.shape, (layer.stride, layer.padding, layer.dilation, layer.groups)
        # One call for each example: unfolding the inputs takes twice as long and ten times the memory.
        pairs = zip(torch.split(inputs, 1), torch.split(slopes, 1), strict=True)
        records[f"{name}.weight"] = _Each(torch.stack([_kernel(image, shape, slope, *how) for image, slope in pairs]))
    else:
        records[f"{name}.weight"] = _Outer(slopes, inputs)
    if layer.bias is not None:
        records[f"{name}.bias"] = _Each(slopes.flatten(2).sum(2) if slopes.dim() > 2 else slopes)
    return records


def _rest(task: Task, parameters: Tensors, names: Sequence[str], batch: Batch) -> dict[str, Tensor]:
    """Return one gradient for each example with respect to some parameters."""
    fixed = {name: tensor for name, tensor in parameters.items() if name not in names}

    def loss(own: dict[str, Tensor], inputs: Tensor, label: Tensor) -> Tensor:
        outputs = functional_call(task.model, {**fixed, **own}, (inputs[None],))
        return task.loss(outputs, label[None]).sum()

    own = {name: parameters[name] for name in names}
    gradients: dict[str, Tensor] = vmap(grad(loss), in_dims=(None, 0, 0))(own, batch.inputs, batch.labels)
    return gradients


def _simple(task: Task, parameters: Tensors, trial: Batch) -> tuple[dict[str, nn.Module], int]:
    """Return the layers with a record made by hand, and how many bytes all watched layers put out for the trial."""
    owners = Counter(id(parameter) for _, parameter in task.model.named_parameters(remove_duplicate=False))
    layers = {
        name: layer
        for name, layer in task.model.named_modules()
        if type(layer) in (nn.Linear, nn.Conv2d)
        and all(owners[id(parameter)] == 1 for parameter in layer.parameters())
        and not isinstance(getattr(layer, "padding", 0), str)
        and getattr(layer, "padding_mode", "zeros") == "zeros"
    }
    leaves = {name: tensor.clone().requires_grad_(True) for name, tensor in parameters.items()}
    with _Watch(layers) as watch:
        losses = task.loss(task.forward(leaves, trial.inputs), trial.labels)
    passed = sum(_bytes(tensor) for calls in watch.calls.values() for call in calls for tensor in call)
    once = {
        name: calls[0]
        for name, calls in watch.calls.items()
        if len(calls) == 1 and _by_rows(layers[name], calls[0][0], trial)
    }
    outputs = [output for _, output in once.values()]
    sought = [*outputs, *leaves.values()]
    gradients = torch.autograd.grad(losses.sum(), sought, allow_unused=True, materialize_grads=True)
    wanted = dict(zip(leaves, gradients[len(outputs) :], strict=True))
    fit = {}
    for (name, (inputs, _)), slope in zip(once.items(), gradients[: len(outputs)], strict=True):
        records = _of_layer(name, layers[name], inputs, slope)
        if all(_close(record.total(), wanted[which]) for which, record in records.items()):
            fit[name] = layers[name]
    return fit, passed


def _by_rows(layer: nn.Module, inputs: Tensor, batch: Batch) -> bool:
    """Return whether the layer took one row, or one image, for each example."""
    return inputs.dim() == (2 if isinstance(layer, nn.Linear) else 4) and len(inputs) == len(batch)


class _Watch:
    """Writes down what goes into each layer and what comes out, while the block lasts."""

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        self.layers = layers
        self.calls: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in layers}
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> _Watch:
        self._hooks = [layer.register_forward_hook(self._write(name)) for name, layer in self.layers.items()]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _write(self, name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
        def hook(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            # Where no parameter asks for gradients, they start here. The network gets a copy, which it may change in
            # place.
            output = output if output.requires_grad else output.detach().requires_grad_(True)
            self.calls[name].append((inputs[0].detach(), output))
            return output.clone()

        return hook


def _join(parts: Sequence[_Record]) -> _Record:
    fields = {field: torch.cat([vars(part)[field] for part in parts]) for field in vars(parts[0])}
    return type(parts[0])(**fields)


def _close(estimate: Tensor, exact: Tensor) -> bool:
    return bool((estimate - exact).norm() <= 1e-3 * exact.norm())


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
