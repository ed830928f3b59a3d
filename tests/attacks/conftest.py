"""Victims whose secret is known: small networks on small images."""

import math

import pytest
import torch
from torch import nn

from leaktight.attacks.linear_layer import LinearLayer, augment
from leaktight.core.defence import Undefended
from leaktight.core.local import Local
from leaktight.core.message import Kind
from leaktight.core.run import Run
from leaktight.core.task import Batch, Model, Normalise
from leaktight.learning.client import Client
from leaktight.learning.optimiser import Sgd
from leaktight.learning.protocol import Server
from leaktight.learning.task import classification
from leaktight.models import MLP


def network(shape=(1, 6, 6), classes=4, bias=True, normalise=None) -> Model:
    generator = torch.Generator().manual_seed(5)
    width = math.prod(shape)
    model = Model(
        nn.Sequential(nn.Flatten(), nn.Linear(width, 24), nn.Sigmoid()), nn.Linear(24, classes, bias=bias), normalise
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=generator) - 0.5)
    return model


@pytest.fixture
def observe():
    """Return a function that lets victims send one message each, or one in each of several rounds about the same examples."""

    def build(
        victims=3,
        batch=1,
        shape=(1, 6, 6),
        classes=4,
        labels=None,
        steps=1,
        rate=0.1,
        bias=True,
        normalise=None,
        seed=0,
        optimiser=None,
        defence=None,
        rounds=1,
        images=None,
        shares=None,
    ):
        defence = defence or Undefended()
        task = defence.on_agree(classification(network(shape, classes, bias, normalise), shape, classes))
        generator = torch.Generator().manual_seed(seed)
        transcript, truths, owned = [], {}, {}
        for number in range(victims):
            count = batch * steps
            chosen = torch.randint(classes, (count,), generator=generator) if labels is None else torch.tensor(labels)
            drawn = (
                torch.rand(count, *shape, generator=generator) if images is None else images[number * count :][:count]
            )
            data = Batch(drawn, chosen)
            client = Client(
                f"client-{number}",
                task,
                data,
                defence,
                Local(f"client-{number}", seed=0),
                batch_size=batch,
                local_steps=steps,
                optimiser=optimiser or Sgd(learning_rate=rate),
                shares=shares or (Kind.GRADIENT if steps == 1 else Kind.UPDATE),
            )
            for turn in range(rounds):
                ask = Server(task.public_parameters()).ask(client.name, turn)
                found = client.answer(ask)
                truths[found.sent.key], owned[client.name] = found, client.local
                transcript += [ask, found.sent]
        return Run(tuple(transcript), task, defence, truths, owned)

    return build


@pytest.fixture
def standardise():
    return Normalise((0.4,), (0.25,))


@pytest.fixture
def rectified():
    """Return a function that gives a linear layer before a ReLU, a batch, and what the layer's gradient of the mean loss is, in single precision."""

    def build(examples, seed=0, units=96, shape=(1, 6, 6), classes=5):
        generator = torch.Generator().manual_seed(seed)
        width = math.prod(shape)
        body = nn.Sequential(nn.Flatten(), nn.Linear(width, units), nn.ReLU())
        model = Model(body, nn.Linear(units, classes), Normalise((0.5,), (0.3,)))
        with torch.no_grad():
            for parameter in model.parameters():
                fan = parameter.shape[-1] if parameter.dim() == 2 else width
                parameter.copy_((2 * torch.rand(parameter.shape, generator=generator) - 1) / fan**0.5)
        task = classification(model, shape, classes)
        images, labels = (
            torch.rand(examples, *shape, generator=generator),
            torch.randint(classes, (examples,), generator=generator),
        )
        loss = task.loss(model(images), labels).mean()
        linear = body[1]
        gradient = augment(*torch.autograd.grad(loss, (linear.weight, linear.bias)))
        ends = [model.normalise(torch.full((1, *shape), end)).flatten() for end in (0.0, 1.0)]
        return (
            LinearLayer.of(task, task.public_parameters(), "body.1", (ends[0], ends[1])),
            Batch(images, labels),
            gradient,
        )

    return build


@pytest.fixture
def relu_run():
    """Return a function that lets participants with a ReLU network send one message each about some images."""

    def build(batch=1, victims=2, defence=None, shares=Kind.GRADIENT, shape=(1, 6, 6), classes=5, seed=0):
        defence = defence or Undefended()
        task = defence.on_agree(classification(MLP(hidden=(96,)).build(shape, classes, seed=seed), shape, classes))
        generator = torch.Generator().manual_seed(seed)
        transcript, truths = [], {}
        for number in range(victims):
            data = Batch(
                torch.rand(batch, *shape, generator=generator), torch.randint(classes, (batch,), generator=generator)
            )
            local = Local(f"client-{number}", seed=0)
            client = Client(local.party, task, data, defence, local, batch_size=batch, shares=shares)
            ask = Server(task.public_parameters()).ask(client.name, 0)
            found = client.answer(ask)
            truths[found.sent.key] = found
            transcript += [ask, found.sent]
        return Run(tuple(transcript), task, defence, truths)

    return build
