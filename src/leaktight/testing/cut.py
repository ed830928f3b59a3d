"""The toys cut in two: a label party that answers activations with cut gradients, one row per example."""

from __future__ import annotations

import torch

from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.core.task import Batch, Task
from leaktight.learning.boundary import require_placeable
from leaktight.testing.conformance import own_draws, require_unchanged
from leaktight.testing.hooks import tensors_of
from leaktight.testing.toys import PARTY, toy_batch, toy_task

PEER = "feature-party"


def cut_message(task: Task, batch: Batch, round: int = 0, sender: str = PARTY) -> Message:
    """Return the undefended cut gradient of a batch: of its mean loss by the features of each example.

    Example:
        >>> {name: tuple(cut.shape) for name, cut in cut_message(toy_task(), binary(toy_batch(5))).tensors.items()}
        {'cut': (5, 16)}
    """
    features = task.model.features(batch.inputs).detach().requires_grad_(True)
    loss = task.loss(task.model.head(features), batch.labels).mean()
    return Message(
        Kind.CUT_GRADIENT,
        sender,
        PEER,
        round,
        {"cut": torch.autograd.grad(loss, features)[0]},
        {"examples": float(len(batch))},
    )


def cut_run(
    defence: Defence | None = None,
    *,
    rounds: int = 3,
    batch_size: int = 2,
    seed: int = 0,
    task: Task | None = None,
    data: Batch | None = None,
) -> Run:
    """Return a run of one honest label party; options as those of `toys.toy_run`, labels made binary.

    A defence that split learning has no place for is refused, as by the real label party.

    Example:
        >>> run = cut_run(rounds=2)
        >>> [str(message.kind) for message in run.transcript]
        ['activation', 'cut_gradient', 'activation', 'cut_gradient']
    """
    defence = defence or Undefended()
    require_placeable(defence)
    task, local = task or toy_task(), Local(PARTY, seed)
    data = binary(data or toy_batch(rounds * batch_size, shape=task.shape))
    local.now.examples = len(data)
    transcript: list[Message] = []
    truths: dict[MessageKey, GroundTruth] = {}
    for number in range(rounds):
        raw = data.take((torch.arange(batch_size) + number * batch_size) % len(data))
        local.begin(number)
        local.now.batch = raw
        used = local.now.batch = defence.on_batch(raw, local)
        clean = cut_message(task, used, number)
        ask = Message(Kind.ACTIVATION, PEER, PARTY, number, {"cut": task.model.features(used.inputs).detach()})
        ground_truth = truths[clean.key] = GroundTruth(task, raw, used, clean, defence.on_message(clean, local))
        transcript += [ask, ground_truth.sent]
    reveals = defence.on_close(local)
    transcript += [Message(Kind.REVEAL, PARTY, PEER, rounds, reveals)] if reveals else []
    return Run(tuple(transcript), task, defence, truths, {PARTY: local}, notes=dict(local.notes))


def cut_step(defence: Defence, local: Local, round: int, raw: Batch | None = None) -> Message:
    """Play a label party's hooks of one step; require that none changes its input, and return what goes out.

    Example:
        >>> from leaktight.defences import IsotropicNoise
        >>> str(cut_step(IsotropicNoise(), Local("label-party", seed=0), 0).kind)
        'cut_gradient'
    """
    task, raw = toy_task(), binary(raw or toy_batch())
    local.now.examples, local.now.batch = len(raw), raw
    require_placeable(defence)
    local.begin(round)
    with own_draws(f"{defence} in on_batch", local), require_unchanged(f"{defence} in on_batch", batch=tensors_of(raw)):
        used = local.now.batch = defence.on_batch(raw, local)
    clean = cut_message(task, used, round, local.party)
    with (
        own_draws(f"{defence} in on_message", local),
        require_unchanged(f"{defence} in on_message", message=clean.tensors, batch=tensors_of(used)),
    ):
        return defence.on_message(clean, local)


def binary(batch: Batch) -> Batch:
    """Return the batch with labels 0 and 1."""
    return Batch(batch.inputs, batch.labels % 2)
