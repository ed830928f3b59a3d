"""The sender of a captured message: what it was asked, what it sent, and what it would have sent without a defence.

And whether its gradient had vanished: then little can be read off the message, whoever tries.
"""

from __future__ import annotations

import copy
import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from leaktight.attacks.replay import Replay
from leaktight.captures.capture import Capture
from leaktight.captures.manifest import Manifest
from leaktight.core.errors import InvalidValue, list_known
from leaktight.core.message import Kind, Message
from leaktight.core.task import Batch, Task

FAINT = 1e-5
"""Below this share of the parameters' size an update in single precision is rounded away by a hundredth or more."""
FADED = 1e-4
"""Below this share of the strongest layer the first layer hardly counts in what is matched."""


def exchange(capture: Capture, task: Task) -> tuple[Message, Message]:
    """Return the parameters that a sender was sent and what it answered, as the messages of a transcript.

    Only tensors of parameters that are learned are attacked, and running statistics of batch norm in training mode;
    what came of other buffers is left out. An update of one plain step is handed on as the gradient that it is,
    -update / learning rate - weight decay * parameters, so that no search depends on the step's size; so is one of
    unknown steps, as if it were one step of size 1. Running statistics stay what they moved by.

    Args:
        capture: the message.
        task: the public task, whose wire names are those of the capture.
    """
    manifest, wanted = capture.manifest, task.public_parameters()
    before, sent = capture.parameters(), capture.tensors()
    who = f"{manifest.sender} in round {manifest.round}"
    for name, tensor in wanted.items():
        if name not in before or before[name].shape != tensor.shape:
            raise InvalidValue(
                f"The parameters of {who} must hold `{name}` of shape {tuple(tensor.shape)} like the model. "
                f"{list_known(before)}"
            )
        if name in sent and sent[name].shape != tensor.shape:
            raise InvalidValue(
                f"The `{name}` that {who} sent must have the shape {tuple(tensor.shape)}. "
                f"Got {tuple(sent[name].shape)} instead."
            )
    kept = [name for name in wanted if name in sent and sent[name].is_floating_point()]
    if not kept:
        raise InvalidValue(
            f"The message of {who} holds no tensor of the model's parameters. Is it the model that was trained?"
        )
    running = {
        name: tensor
        for name, tensor in task.public_running().items()
        if name in before and name in sent and before[name].shape == sent[name].shape == tensor.shape
    }
    asked = {name: before[name].to(wanted[name]) for name in wanted}
    answer = {name: sent[name].to(wanted[name]) for name in kept}
    statistics = {name: sent[name].to(tensor) for name, tensor in running.items()}
    kind, facts = Kind(manifest.kind), manifest.facts()
    if kind is Kind.UPDATE and facts["local_steps"] == 1 and not manifest.adaptive:
        rate, decay = facts["learning_rate"], facts.get("weight_decay", 0.0)
        answer = {name: -tensor / rate - decay * asked[name] for name, tensor in answer.items()}
        kind, facts = Kind.GRADIENT, {"examples": facts["examples"]}
    asked |= {name: before[name].to(tensor) for name, tensor in running.items()}
    return (
        Message(Kind.PARAMETERS, manifest.receiver, manifest.sender, manifest.round, asked),
        Message(kind, manifest.sender, manifest.receiver, manifest.round, {**answer, **statistics}, facts),
    )


def undefended_message(task: Task, asked: Message, sent: Message, batch: Batch, manifest: Manifest) -> Message | None:
    """Return what a sender would have sent for its private batch without a defence; None if its steps are not known.

    Batch norm normalises by the batch, as it did in training, unless the manifest says that it was in evaluation mode.
    Dropout is off: its draws cannot be repeated.

    Args:
        task: the public task.
        asked: the parameters that the sender was sent.
        sent: what it answered.
        batch: its private examples, all local steps in order.
        manifest: what is known of the message.
    """
    if (
        tuple(batch.inputs.shape[1:]) != task.shape
        or int(batch.labels.max()) >= task.classes
        or int(batch.labels.min()) < 0
    ):
        raise InvalidValue(
            f"The truth of `{manifest.name}` must hold inputs of shape {task.shape} and labels from 0 to "
            f"{task.classes - 1}. Got shape {tuple(batch.inputs.shape[1:])} and labels from {int(batch.labels.min())} "
            f"to {int(batch.labels.max())} instead."
        )
    if manifest.examples is not None and len(batch) != manifest.examples:
        raise InvalidValue(
            f"The truth of `{manifest.name}` must hold as many examples as its manifest says, {manifest.examples}. "
            f"Got {len(batch)} instead."
        )
    if manifest.unknown_steps or manifest.adaptive or not manifest.is_replayed:
        return None
    as_sent = bool(task.model.batch_norms()) or manifest.training is False
    replay = Replay.of(task if as_sent else _in_training(task), sent)
    targets = F.one_hot(batch.labels, task.classes).to(batch.inputs)
    tensors = {name: mean.detach() for name, mean in replay(asked.tensors, batch.inputs, targets).means.items()}
    return dataclasses.replace(sent, tensors=tensors, facts={**sent.facts, "examples": float(len(batch))})


def _in_training(task: Task) -> Task:
    """Return the task with batch norm that normalises by the batch and remembers nothing."""
    model = copy.deepcopy(task.model)
    for layer in model.modules():
        if isinstance(layer, _BatchNorm):
            layer.train()
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = None
            layer.num_batches_tracked = None
    return dataclasses.replace(task, model=model)


def has_vanished(task: Task, asked: Message, sent: Message) -> bool:
    """Return whether the gradient behind a message has vanished: everywhere, or on its way to the first layer.

    Sizes are root mean squares over entries that are not zero, so that entries that were left out do not count.

    Args:
        task: the public task, which knows the order of layers.
        asked: the parameters that the sender was sent.
        sent: what it answered.
    """
    layers = [
        _size([sent.tensors[wire] for name in names if (wire := task.wire(name)) is not None and wire in sent.tensors])
        for names in task.layers().values()
    ]
    sizes = [size for size in layers if size > 0]
    wires = task.wires()
    whole, parameters = (
        _size([tensor for name, tensor in message.tensors.items() if name in wires]) for message in (sent, asked)
    )
    return bool(sizes) and (whole < FAINT * parameters or sizes[0] < FADED * max(sizes))


def _size(tensors: list[Tensor]) -> float:
    entries = torch.cat([tensor.flatten() for tensor in tensors]).double() if tensors else torch.zeros(0)
    nonzero = entries[entries != 0]
    return float(nonzero.square().mean().sqrt()) if len(nonzero) else 0.0
