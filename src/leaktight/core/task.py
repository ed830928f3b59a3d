"""Tasks: what is learned. A model as body and head, a loss for each example, and which parameters go out."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from leaktight.core.errors import InvalidValue
from leaktight.core.message import Tensors, layer_of
from leaktight.core.training_mode import MEAN, VARIANCE, BatchNorm, Dropout, Dropped, TrainingLayer, TrainingPass


@dataclasses.dataclass(frozen=True)
class Batch:
    """Examples: inputs in natural units (pixels in [0, 1]), integer labels, and if known who has a private property.

    Args:
        inputs: what the model sees, one row per example.
        labels: what it is to learn.
        properties: 1 for an example with the property that nobody meant to share, 0 for one without; None if there is
            none.
    """

    inputs: Tensor
    labels: Tensor
    properties: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: Tensor) -> Batch:
        """Return the examples at these positions."""
        return self._map(lambda tensor: tensor[index])

    def copy(self) -> Batch:
        """Return the batch with tensors of its own."""
        return self._map(Tensor.clone)

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return self._map(lambda tensor: tensor.to(device))

    @staticmethod
    def join(batches: Sequence[Batch]) -> Batch:
        """Return all examples of several batches, in order."""
        properties = [b.properties for b in batches if b.properties is not None]
        return Batch(
            torch.cat([b.inputs for b in batches]),
            torch.cat([b.labels for b in batches]),
            torch.cat(properties) if properties and len(properties) == len(batches) else None,
        )

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return Batch(
            change(self.inputs), change(self.labels), None if self.properties is None else change(self.properties)
        )


class Normalise(nn.Module):
    """Shift and scale each channel by public constants, so that data and metrics stay in natural units."""

    def __init__(self, mean: Sequence[float] = (0.0,), std: Sequence[float] = (1.0,)) -> None:
        super().__init__()
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (inputs - mean) / std, channel by channel."""
        shift, scale = self.units(inputs.dim() - 1)
        return (inputs - shift) / scale

    def units(self, dimensions: int) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation in a form that broadcasts over examples of so many dimensions."""
        trailing = (1,) * (dimensions - 1)
        return self.mean.view(-1, *trailing), self.std.view(-1, *trailing)


class Model(nn.Module):
    """A body that makes features, and a head that makes outputs from them."""

    def __init__(self, body: nn.Module, head: nn.Module, normalise: nn.Module | None = None) -> None:
        super().__init__()
        self.normalise = normalise or nn.Identity()
        self.body, self.head = body, head

    def features(self, inputs: Tensor) -> Tensor:
        """Return what the head sees."""
        features: Tensor = self.body(self.normalise(inputs))
        return features

    def forward(self, inputs: Tensor) -> Any:
        """Return the head's outputs."""
        return self.head(self.features(inputs))

    def tensors(self) -> dict[str, Tensor]:
        """Return the parameters by name, detached."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def batch_norms(self) -> dict[str, BatchNorm]:
        """Return the layers that normalise by the batch in training mode, by name: they mix its examples."""
        return {name: layer for name, layer in self.named_modules() if isinstance(layer, BatchNorm)}

    def running(self) -> dict[str, Tensor]:
        """Return the running statistics that training changes, by name."""
        return {
            f"{name}.{part}": getattr(layer, part).detach()
            for name, layer in self.batch_norms().items()
            for part in (MEAN, VARIANCE)
            if layer.tracks
        }

    @property
    def drops(self) -> bool:
        """Whether dropout is in training mode somewhere."""
        return any(isinstance(layer, Dropout) and layer.training and layer.rate > 0 for layer in self.modules())

    @contextmanager
    def training_pass(self, current: TrainingPass) -> Iterator[TrainingPass]:
        """Let layers take part in a pass inside the block, as far as they are in training mode."""
        layers = {name: layer for name, layer in self.named_modules() if isinstance(layer, TrainingLayer)}
        try:
            for name, layer in layers.items():
                layer.name, layer.current = name, current
            yield current
        finally:
            for layer in layers.values():
                layer.current = None

    def parts(self) -> tuple[str, ...]:
        """Return the names of the modules in body and head that hold tensors, learned or fixed."""
        tensors = ((name, [*module.parameters(), *module.buffers()]) for name, module in self.named_modules())
        return tuple(name for name, own in tensors if own and name.split(".")[0] in ("body", "head"))


def same_name(name: str) -> str | None:
    """Send a parameter under its own name."""
    return name


@dataclasses.dataclass(frozen=True)
class Task:
    """A model and what it is trained for.

    Args:
        model: body and head. Parameters are read from here once and then travel as named tensors.
        loss: (outputs, labels) to one loss per example. Public losses accept class indices or probabilities as labels.
        predict: outputs to class scores.
        shape: the shape of one example's inputs.
        classes: how many classes there are.
        wire: parameter name to its name in messages; `None` for a parameter that stays home.
        agreed: what else the parties agreed on before training: names that a defence chose in public, by the defence's
            key.
        names: what the classes are called, in their order; empty if nobody says.
    """

    model: Model
    loss: Callable[[Any, Tensor], Tensor]
    predict: Callable[[Any], Tensor]
    shape: tuple[int, ...]
    classes: int
    wire: Callable[[str], str | None] = same_name
    agreed: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict, compare=False)
    names: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    def forward(self, parameters: Tensors, inputs: Tensor) -> Any:
        """Run the model with these parameters in place of its own.

        A model in training mode normalises by the batch, drops nothing, and stays as it is.
        """
        return torch.func.functional_call(self.model, dict(parameters), (inputs,))

    def training_forward(
        self, parameters: Tensors, inputs: Tensor, masks: Tensors | None = None, running: Tensors | None = None
    ) -> tuple[Any, TrainingPass]:
        """Run the model as a step of training does; return its outputs, and what the pass leaves.

        Args:
            parameters: by the model's names.
            inputs: the batch.
            masks: what dropout multiplies by, a row for each example; none for what it does on average.
            running: the running statistics before the pass, by the model's names; empty to follow none.
        """
        with self.model.training_pass(TrainingPass(masks or {}, dict(running or {}))) as current:
            return self.forward(parameters, inputs), current

    def dropouts(self) -> dict[str, Dropped]:
        """Return what dropout drops of an example, for each use of a layer; nothing where none is in training mode."""
        if not self.model.drops:
            return {}
        with torch.no_grad():
            blank = torch.zeros(1, *self.shape, device=self.device)
            return self.training_forward(self.model.tensors(), blank)[1].dropped

    def public_parameters(self) -> dict[str, Tensor]:
        """Return the model's parameters that go out, by wire name."""
        return self.outward(self.model.tensors())

    def public_running(self) -> dict[str, Tensor]:
        """Return the model's running statistics that go out along with parameters, by wire name."""
        return self.outward(self.model.running())

    def public_state(self) -> dict[str, Tensor]:
        """Return all that goes out of the model, by wire name: parameters, and running statistics of batch norm."""
        return {**self.public_parameters(), **self.public_running()}

    def wires(self) -> frozenset[str]:
        """Return the names under which parameters go out.

        Anything else in a message is a buffer that was sent along, such as the running statistics of batch norm.
        """
        return frozenset(wire for name in self.model.tensors() if (wire := self.wire(name)) is not None)

    def model_parameters(self, tensors: Tensors, private: Tensors | None = None) -> dict[str, Tensor]:
        """Return every parameter by the model's own name.

        What goes out comes from `tensors`, by wire name; the rest comes from `private`.

        Args:
            tensors: public parameters by wire name.
            private: parameters that stay home, by the model's name; one that is missing is taken from the model.
        """
        parameters = {}
        for name, own in self.model.tensors().items():
            wire = self.wire(name)
            if wire is not None and wire not in tensors:
                raise InvalidValue(
                    f"The parameter `{wire}` must be among the tensors. Got {len(tensors)} others instead."
                )
            parameters[name] = (private or {}).get(name, own) if wire is None else tensors[wire]
        return parameters

    def model_running(self, tensors: Tensors) -> dict[str, Tensor]:
        """Return the running statistics by the model's own name, from tensors by wire name; else the model's own."""
        own = self.model.running()
        return {name: tensors.get(self.wire(name) or "", tensor) for name, tensor in own.items()}

    def model_state(self, tensors: Tensors, private: Tensors | None = None) -> dict[str, Tensor]:
        """Return every parameter and running statistic by the model's own name, as `model_parameters` does."""
        return {**self.model_parameters(tensors, private), **self.model_running(tensors)}

    def outward(self, tensors: Tensors) -> dict[str, Tensor]:
        """Return what goes out of tensors by the model's names, by wire name."""
        named = ((self.wire(name), tensor) for name, tensor in tensors.items())
        return {wire: tensor for wire, tensor in named if wire is not None}

    def layers(self) -> dict[str, tuple[str, ...]]:
        """Return the layers that go out, by wire name from first to last.

        Each comes with the model's names of its parameters.
        """
        layers: dict[str, tuple[str, ...]] = {}
        for name in self.model.tensors():
            wire = self.wire(name)
            if wire is not None:
                layers[layer_of(wire)] = (*layers.get(layer_of(wire), ()), name)
        return layers

    def copy(self) -> Task:
        """Return the task with a model of its own."""
        return dataclasses.replace(self, model=copy.deepcopy(self.model))

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device
