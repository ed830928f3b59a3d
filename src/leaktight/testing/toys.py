"""Toys: a network, data and runs small enough to check by hand, with answers that are known."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import global_seed, normal_like, seed_of, stream
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.core.task import Batch, Model, Task
from leaktight.learning.client import Client
from leaktight.learning.gradient import gradient
from leaktight.learning.schedule import ByProperty, Schedule, Shuffled
from leaktight.learning.task import as_scores, cross_entropy
from leaktight.models.mode import set_modes
from leaktight.plans.control import nullify

SHAPE = (1, 3, 4)
CLASSES = 4
PARTY = "client-0"


class Shift(nn.Module):
    """Scale by a parameter without dimensions and shift by one of a single entry: shapes that are easily forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(1.5)), nn.Parameter(torch.tensor([0.25]))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return scale * inputs + shift."""
        return self.scale * inputs + self.shift


def toy_task(seed: int = 0, *, shape: tuple[int, ...] = SHAPE, loss_scale: float = 1.0, scalars: bool = False) -> Task:
    """Return a classification task: linear with bias, tanh, linear head with bias.

    The known answer: for one example x and any loss, the gradient of the first weight's row i is x times that of its
    bias i.

    Args:
        seed: what the initial weights derive from.
        shape: the shape of one example.
        loss_scale: what the loss is multiplied with, to make gradients tiny, huge or zero.
        scalars: whether the body also has parameters of zero dimensions and of one entry.

    Example:
        >>> {name: tuple(tensor.shape) for name, tensor in toy_task().public_parameters().items()}
        {'body.1.weight': (16, 12), 'body.1.bias': (16,), 'head.weight': (4, 16), 'head.bias': (4,)}
    """
    with global_seed(seed_of(seed, "toy model")):
        extra = [Shift()] if scalars else []
        model = Model(
            nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 16), nn.Tanh(), *extra), nn.Linear(16, CLASSES)
        )

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        return loss_scale * cross_entropy(outputs, labels)

    return Task(model, loss, as_scores, shape, CLASSES)


def normed_task(seed: int = 0, shape: tuple[int, ...] = SHAPE, dropout: float = 0.0) -> Task:
    """Return a task with batch norm in training mode: convolution, batch norm, tanh, dropout, linear head.

    The known answer: the mean of the batch at the norm follows from its running statistics before and after.

    Args:
        seed: what the initial weights derive from.
        shape: the shape of one example, an image.
        dropout: how likely a feature is dropped, in [0, 1).

    Example:
        >>> list(normed_task().public_running())
        ['body.1.running_mean', 'body.1.running_var']
    """
    with global_seed(seed_of(seed, "toy norm")):
        body = nn.Sequential(
            nn.Conv2d(shape[0], 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.Tanh(),
            nn.Flatten(),
            nn.Dropout(dropout),
        )
        model = Model(set_modes(body, "train"), nn.Linear(4 * math.prod(shape[1:]), CLASSES))
    return Task(model, cross_entropy, as_scores, shape, CLASSES)


def toy_batch(examples: int = 6, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Batch:
    """Return examples with pixels in [0, 1] and labels of all classes, drawn from a stream of their own.

    Example:
        >>> toy_batch(5).inputs.shape, toy_batch(5).labels.shape
        (torch.Size([5, 1, 3, 4]), torch.Size([5]))
    """
    rng = stream(seed, "toy batch")
    return Batch(torch.rand(examples, *shape, generator=rng), torch.randint(0, CLASSES, (examples,), generator=rng))


def toy_message(task: Task | None = None, batch: Batch | None = None, round: int = 0) -> Message:
    """Return the undefended gradient message of a batch at the task's own parameters.

    Example:
        >>> toy_message().tensors["head.bias"].sum().abs().item() < 1e-6  # probabilities and labels both sum to one
        True
    """
    task, batch = task or toy_task(), batch or toy_batch()
    gradients = gradient(task, task.model.tensors(), batch)
    return Message(Kind.GRADIENT, PARTY, "server", round, gradients.tensors, {"examples": float(len(batch))})


def toy_parameters(task: Task, seed: int = 0) -> dict[str, Tensor]:
    """Return public parameters as after some training: not those in the task's model.

    An attack that reads the model instead of the message, or writes into it, is found out by the difference.
    """
    rng = stream(seed, "toy training")
    return {name: tensor + 0.05 * normal_like(tensor, rng) for name, tensor in task.public_state().items()}


def toy_run(
    defence: Defence | None = None,
    *,
    rounds: int = 3,
    batch_size: int = 2,
    seed: int = 0,
    task: Task | None = None,
    data: Batch | None = None,
    auxiliary: Batch | None = None,
    schedule: Schedule | None = None,
) -> Run:
    """Return a run of one honest client that answers each round with a gradient, and closes at the end.

    Args:
        defence: what the client does about leakage; None for nothing.
        rounds: how many messages it sends.
        batch_size: examples behind each message.
        seed: what the client's randomness derives from.
        task: the task before the defence's `on_agree`; None for `toy_task()`.
        data: what the client owns; None for `toy_batch()` of as many examples as are used.
        auxiliary: what is public; None for 32 other examples.
        schedule: which examples are behind each message; None for all in turn, shuffled.

    Example:
        >>> run = toy_run(rounds=2)
        >>> [str(message.kind) for message in run.transcript], sorted(run.truths)
        (['parameters', 'gradient', 'parameters', 'gradient'], [('client-0', 0), ('client-0', 1)])
    """
    defence = defence or Undefended()
    task = task or toy_task()
    public = defence.on_agree(task)
    local = Local(PARTY, seed)
    data = data or toy_batch(rounds * batch_size, shape=task.shape)
    client = Client(PARTY, public, data, defence, local, batch_size, schedule=schedule or Shuffled())
    parameters = toy_parameters(public)
    transcript: list[Message] = []
    truths: dict[MessageKey, GroundTruth] = {}
    for number in range(rounds):
        ask = Message(
            Kind.PARAMETERS, "server", PARTY, number, {name: tensor.clone() for name, tensor in parameters.items()}
        )
        ground_truth = client.answer(ask)
        truths[ground_truth.sent.key] = ground_truth
        transcript += [ask, ground_truth.sent]
    reveal = client.close()
    transcript += [reveal] if reveal else []
    return Run(
        transcript=tuple(transcript),
        public=public,
        defence=defence,
        truths=truths,
        locals={PARTY: local},
        auxiliary=auxiliary or toy_batch(32, seed=1, shape=task.shape),
        notes=dict(local.notes),
    )


def mark_property(batch: Batch) -> Batch:
    """Return the batch with a private property: the first two pixels are light in every second example, else dark.

    It has nothing to do with the labels, and stands in the gradient of the first layer.

    Example:
        >>> mark_property(toy_batch(4)).properties.tolist()
        [0, 1, 0, 1]
    """
    properties = torch.arange(len(batch)) % 2
    inputs = batch.inputs.flatten(1).clone()
    inputs[:, :2] = properties[:, None].float()
    return Batch(inputs.view_as(batch.inputs), batch.labels, properties)


def property_run(defence: Defence | None = None, *, rounds: int = 40, batch_size: int = 8, seed: int = 0) -> Run:
    """Return a toy run in which every second message, on average, is made from examples with a private property.

    The others are made from examples without it.

    Example:
        >>> run = property_run(rounds=4)
        >>> sorted(int(truth.raw.properties.sum()) for truth in run.truths.values())
        [0, 0, 8, 8]
    """
    return toy_run(
        defence,
        rounds=rounds,
        batch_size=batch_size,
        seed=seed,
        data=mark_property(toy_batch(64)),
        auxiliary=mark_property(toy_batch(64, seed=1)),
        schedule=ByProperty(every=2),
    )


def null_run(run: Run, seed: int = 0) -> Run:
    """Return the run with noise of the same norm in place of every honest message: there is nothing to find in it.

    Example:
        >>> run = toy_run(rounds=1)
        >>> one, other = (r.transcript[1].tensors["head.weight"] for r in (run, null_run(run)))
        >>> torch.allclose(one.norm(), other.norm()), torch.allclose(one, other)
        (True, False)
    """
    return nullify(run, stream(seed, "null"))
