"""The recorder: ten lines in any PyTorch loop, and what would be sent is there to be audited."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from leaktight.captures.capture import difference, make_capture_folder, write_capture
from leaktight.captures.manifest import Manifest
from leaktight.captures.training import read_optimiser
from leaktight.captures.truth import write_truth
from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch


@dataclasses.dataclass
class Recorder:
    """Writes down gradients and updates of a model, as a server would see them.

    Nothing of the examples is written but their number and shape, unless `truth` names a file for them. Messages are
    numbered as they come. The folder and its files are for their owner alone.

    Args:
        folder: where captures are written; it must hold none yet.
        model: the model that is trained; its parameters are read, never changed.
        reference: `package.module:function` that makes the model, for whoever audits; it can be given then, too.
        shape: the shape of one example; taken from `batch` if that is given.
        sender: the name under which messages are kept.
        mean: what is taken off each channel before the model sees it, outside the model; empty if nothing is, None if
            you do not know.
        std: what each channel is divided by then.
        optimiser: what makes the steps of updates; its learning rate, momentum and weight decay are read off it.
        truth: where to keep the examples themselves, for an owner who wants the audit graded; None keeps none.

    Example:
        >>> import tempfile, torch
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
        >>> inputs, labels = torch.rand(3, 1, 2, 2), torch.tensor([0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder, Recorder(Path(folder) / "seen", model) as recorder:
        ...     nn.functional.cross_entropy(model(inputs), labels).backward()
        ...     recorder.gradient(batch=(inputs, labels)).examples
        3
    """

    folder: Path | str
    model: nn.Module
    reference: str = ""
    shape: tuple[int, ...] | None = None
    sender: str = "model"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    truth: Path | str | None = None
    optimiser: torch.optim.Optimizer | None = None
    _next: int = dataclasses.field(default=0, init=False, repr=False)
    _batches: dict[str, Batch] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def __enter__(self) -> Self:
        """Make the folder, or say that it is taken."""
        self.folder = make_capture_folder(Path(self.folder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the truth, if it was asked for."""
        if self.truth is not None and self._batches:
            write_truth(Path(self.truth).expanduser(), self._batches)

    def gradient(
        self,
        tensors: Mapping[str, Tensor] | None = None,
        *,
        examples: int | None = None,
        batch: tuple[Tensor, Tensor] | None = None,
    ) -> Manifest:
        """Write down the mean gradient of a batch at the model's parameters, before the optimiser moves them.

        Args:
            tensors: the gradient by parameter name; None takes what `backward` left in `.grad`.
            examples: how many examples are behind it; taken from `batch` if that is given.
            batch: inputs and labels.

        Returns:
            The manifest that was written.
        """
        if tensors is None:
            tensors = {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}
        if not tensors:
            raise InvalidValue("A gradient to record must hold a tensor. Got none instead; call `backward` first.")
        return self._write(self.model.state_dict(), tensors, "gradient", batch, examples=examples)

    def update(
        self,
        before: Mapping[str, Tensor],
        after: Mapping[str, Tensor] | None = None,
        *,
        examples: int | None = None,
        batch: tuple[Tensor, Tensor] | None = None,
        **known: Any,
    ) -> Manifest:
        """Write down what several local steps changed.

        Args:
            before: the state dict before them, as a copy: `{name: tensor.clone() for ...}`.
            after: the state dict after them; None takes the model's.
            examples: how many examples are behind them, all steps together.
            batch: inputs and labels of all steps, in order.
            known: `batch_size`, `local_steps`, `optimiser`, `learning_rate`, `momentum`, `weight_decay`, as in `Known`.

        Returns:
            The manifest that was written.
        """
        update = difference(before, self.model.state_dict() if after is None else after)
        if not update or not any(tensor.any() for tensor in update.values()):
            raise InvalidValue(
                "An update to record must differ from what was there before. Got the same tensors; "
                "copy the state dict before training."
            )
        seen = {} if self.optimiser is None else read_optimiser(self.optimiser)
        return self._write(before, update, "update", batch, examples=examples, **{**seen, **known})

    def _write(
        self,
        before: Mapping[str, Tensor],
        sent: Mapping[str, Tensor],
        kind: str,
        batch: tuple[Tensor, Tensor] | None,
        **known: Any,
    ) -> Manifest:
        shape = self.shape
        if batch is not None:
            inputs, labels = (part.detach().cpu().clone() for part in batch)
            shape, known["examples"] = tuple(inputs.shape[1:]), len(labels)
            self._batches |= {f"{self.sender}/{self._next}": Batch(inputs, labels)} if self.truth is not None else {}
        manifest = write_capture(
            Path(self.folder),
            {name: tensor.detach() for name, tensor in before.items()},
            sent,
            kind=kind,
            sender=self.sender,
            round=self._next,
            model=self.reference,
            shape=shape,
            mean=self.mean,
            std=self.std,
            training=self.model.training,
            **known,
        )
        self._next += 1
        return manifest
