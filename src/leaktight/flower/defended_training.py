"""Defended training: a user's own loop under a defence that needs the model, the examples or each step's gradient."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context
from torch import Tensor, nn

from leaktight.captures.task import Statistics, mixing_layers, outputs_in, random_layers, task_of
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.task import Batch, Task
from leaktight.flower.claimed_sampling import ClaimedSampling, LoaderSampling
from leaktight.flower.codec import record_of
from leaktight.flower.defence_memory import begins_run, load_memory, make_state_folder, save_memory
from leaktight.flower.protect import warn_conflicts
from leaktight.learning.gradient import gradient, require_each_once
from leaktight.learning.optimiser import Optimiser, Sgd

_PRIVATE = "private"
_SLOW = Sgd(learning_rate=0.01)


@dataclasses.dataclass
class DefendedTraining:
    """One participant's training between two messages, under a defence; made by `defend_training`.

    Args:
        defence: what is done about leakage.
        model: the model that is trained; its `.grad` is written, its parameters are left to the user's own optimiser.
        context: the node's context, in whose state memory and notes are kept.
        task: the participant's own task, private head included.
        local: what it never sends.
        optimiser: what private parameters follow; as for a participant of `leaktight train`, its moments start from
            zero in every message.
        sampling: how the examples of each batch are chosen, as the user claims.
        folder: where memory and budget outlast the node's process.
    """

    defence: Defence
    model: nn.Module
    context: Context
    task: Task
    local: Local
    optimiser: Optimiser
    sampling: ClaimedSampling
    folder: Path | None = None
    _start: dict[str, Tensor] = dataclasses.field(init=False, repr=False)
    _private: dict[str, Tensor] = dataclasses.field(init=False, repr=False)
    _steps: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        self._start = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        own, kept = self.task.model.tensors(), self.local.memory.get(_PRIVATE, {})
        self._private = {
            name: kept.get(name, tensor).clone().requires_grad_(True)
            for name, tensor in own.items()
            if self.task.wire(name) is None
        }
        self._mover = self.optimiser.at(self.local.round).over(self._private.values()) if self._private else None

    def backward(self, inputs: Tensor, labels: Tensor) -> None:
        """Write the defended gradient of a batch into `.grad`, in place of `loss.backward()`; then step as usual.

        Args:
            inputs: the examples as the model is given them.
            labels: their classes.
        """
        now = self.local.now
        now.batch = Batch(inputs, labels)
        now.sampling = self.sampling.next(len(labels))
        # A sampled batch may be empty; then there is nothing to change.
        used = now.batch = self.defence.on_batch(now.batch, self.local) if len(labels) else now.batch
        require_each_once(self.defence, Batch(inputs, labels), used)
        named = dict(self.model.named_parameters())
        public = {wire: named[wire].detach() for wire in self.task.public_parameters()}
        parameters = self.task.model_parameters(public, {name: t.detach() for name, t in self._private.items()})
        raw = gradient(self.task, parameters, used, per_example=self.defence.per_example)
        tensors = self.defence.on_gradient(raw, self.local).mean().tensors
        for name, tensor in self.task.outward(tensors).items():
            named[name].grad = tensor.detach().to(named[name].dtype)
        if self._mover is not None:
            for name, leaf in self._private.items():
                leaf.grad = tensors[name].detach()
            self._mover.step()
            self.local.memory[_PRIVATE] = {name: leaf.detach().clone() for name, leaf in self._private.items()}
        self._steps += 1

    def arrays(self) -> ArrayRecord:
        """Return the arrays for the reply, in place of `ArrayRecord(model.state_dict())`, and keep memory and notes.

        The update goes through the defence's `on_message`; integer arrays go back as they came. If no step went through
        `backward`, or the update is not finite, this raises, and Flower sends an error in place of the update. If some
        steps go through `backward` and others do not, the others are neither noticed nor defended.
        """
        if not self._steps:
            raise InvalidValue(
                "A defended training run must take its steps by `backward`. Got none; call it in place of "
                "`loss.backward()`."
            )
        state = {name: tensor.detach() for name, tensor in self.model.state_dict().items()}
        update = {name: state[name] - old for name, old in self._start.items() if old.is_floating_point()}
        facts = {"examples": float(self.local.examples), "local_steps": float(self._steps)}
        message = Message(Kind.UPDATE, self.local.party, "server", self.local.round, update, facts)
        sent = self.defence.on_message(message, self.local).outgoing()
        if not all(torch.isfinite(tensor).all() for tensor in sent.values()):
            raise InvalidValue("The update is not finite and was not sent. Use a smaller learning rate.")
        save_memory(self.context, self.defence, self.local, self.folder)
        self._steps = 0
        return record_of({name: old + sent[name] if name in sent else old for name, old in self._start.items()})


def defend_training(
    defence: Defence,
    model: nn.Module,
    context: Context,
    labels: Tensor,
    shape: tuple[int, ...],
    *,
    head: str = "",
    statistics: Statistics | None = None,
    optimiser: Optimiser | None = None,
    sampling: LoaderSampling = "unknown",
    batch_size: int | None = None,
    state: str | Path | None = None,
) -> DefendedTraining:
    """Return a participant's training under any defence: polarization, transformations, DP-SGD, a layer guard, a chain.

    What crosses the boundary is what `arrays` returns. Noise and secrets come from keys of 256 secret bits. Private
    heads, codes and spent budgets stay in the context's state, or in the folder `state`. Epsilon is cumulative over all
    messages: `core.budget.budgets_of(notes_of(context, defence))` says it with its delta and with what it rests on.
    Call this after the received parameters were put into the model.

    Args:
        defence: what is done about leakage.
        model: the model with the received parameters. It must end in a linear layer; batch norm and dropout in training
            mode are refused.
        context: the node's context.
        labels: the classes of all examples that the participant owns.
        shape: the shape of one example.
        head: the name of the last linear layer; empty to find it.
        statistics: mean and standard deviation of each channel, if `backward` is given pixels in [0, 1] that the task
            is to standardise.
        optimiser: what private parameters follow, such as a private head: give the settings of your own optimiser, so
            that they move as the shared ones do. Its moments start from zero in every message. None for SGD at a
            learning rate of 0.01.
        sampling: how your loader chooses the examples of a batch, for the account of `dp_sgd`. `unknown` relies only on
            no example being twice in a batch: every example may be in each, and each step counts in full. `passes`:
            from one message to the next the loader goes through the data from the start, each example at most once in a
            pass, shuffled or not; each pass counts once, so none may be broken off. `poisson`: every example is in each
            batch with probability `batch_size` / examples, by a secret draw of its own, as Opacus' `DPDataLoader` does;
            only then does sampling make epsilon smaller. Batches may be empty; hand those to `backward` too.
        batch_size: the expected size of a batch, under `poisson`: what the noisy sum is divided by.
        state: a folder of the node's own, where budget and memory outlast its process and its runs.

    Example:
        >>> from flwr.app import RecordDict
        >>> from leaktight.defences import DPSGD
        >>> context = Context(run_id=1, node_id=2, node_config={}, state=RecordDict(), run_config={})
        >>> net, inputs, labels = nn.Linear(4, 2), torch.ones(3, 4), torch.tensor([0, 1, 1])
        >>> own = defend_training(DPSGD(), net, context, labels, shape=(4,))
        >>> own.backward(inputs, labels)
        >>> list(own.arrays())
        ['weight', 'bias']
    """
    if begins_run(context, defence, None if state is None else Path(state).expanduser()):
        warn_conflicts(defence)
    _require_plain_layers(model)
    mode = model.training
    classes = outputs_in(model, shape) or 2
    public = task_of(model, shape, classes, head, statistics)
    model.train(mode)
    agreed = defence.on_agree(public)
    if _shapes(agreed) != _shapes(public):
        raise InvalidValue(
            f"{defence.kind} changes the public model, which all parties and the server must agree on. "
            "Use `leaktight train --backend flower`."
        )
    folder = make_state_folder(state)
    local = load_memory(context, defence, folder)
    local.now.examples = len(labels)
    local.now.classes = tuple(map(int, torch.unique(labels).tolist()))
    claimed = ClaimedSampling(sampling, len(labels), batch_size)
    return DefendedTraining(
        defence, model, context, defence.on_task(agreed, local), local, optimiser or _SLOW, claimed, folder
    )


def _require_plain_layers(model: nn.Module) -> None:
    """Refuse layers whose training mode a defence would have to know: statistics go out, and dropout draws."""
    modes = {"Batch norm": mixing_layers(model), "Dropout": random_layers(model)}
    for what, names in modes.items():
        training = [name for name in names if model.get_submodule(name).training]
        if training:
            raise InvalidValue(
                f"{what} `{training[0]}` in training mode cannot be defended here. Call `.eval()` on it."
            )


def _shapes(task: Task) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in task.public_parameters().items()}
