"""Class keys: class scores that only the owner of a class can compute, against attackers who train along."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from leaktight.core.channel import Channel
from leaktight.core.defence import Defence, Strength
from leaktight.core.draws import Draws, public_draws
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Message, Tensors
from leaktight.core.task import Model, Task
from leaktight.core.threat import Knows
from leaktight.defences.embedding import EmbeddingHead, Layer, inner_products
from leaktight.defences.key_theory import effective_length, orthonormal_keys, random_keys


class RegularisedModel(Model):
    """A model that returns the sum of its squared parameters beside its outputs."""

    def forward(self, inputs: Tensor) -> tuple[Any, Tensor]:
        """Return the outputs, and the sum."""
        return super().forward(inputs), torch.stack([parameter.square().sum() for parameter in self.parameters()]).sum()


class ClassKeys(Defence):
    r"""Let every participant score its classes by private keys, so nobody else can tell how well an image fits one.

    Before training the head is replaced, in public, by an embedding \(\phi(x)\) of length 1 in d dimensions. Every
    participant draws for each of its classes a random key \(\psi_c\) of length 1, and trains the shared network on

    .. math:: L = -s \, \langle \phi_\theta(x), \psi_y \rangle + \lambda \lVert \theta \rVert^2 .

    Keys stay home until training is over. Then everybody reveals those of the classes it owns, and the class of an
    image is the one with the best key, \(\arg\max_c \max_p \langle \phi(x), \psi_c^p \rangle\). Before that a
    participant can score its own classes only. In place of the unknown keys, the public task has some that anybody can
    draw: its loss is that of a participant without secrets.

    What a message still tells: the gradient at the layer before the embedding is the keys' image under its transpose,
    and goes out. With the fixed layer that is `features` numbers for each key of `dimensions`; a learned layer's own
    gradient lies in the space of keys and shows those behind a message almost as they are. Labels of own classes can be
    told apart by it. And whoever holds the model before and after an update can estimate keys well enough to draw some
    class of its sender's: attack with `gan`, whose keys are `estimated`.

    With the fixed layer the effective length of keys is \(\min(d, F)\), with F the features that go into it: what a
    generator follows is a key's image in F numbers, and those of two random keys overlap by about \(1 / \sqrt F\)
    however long the keys are. LeNet has 84 features, the networks of the public code 256 and 512. Beyond F, widen the
    network's last layer (or `features`, if what is before it is as wide) before you lengthen keys.

    Args:
        dimensions: d, from 2 to 65,536; the more, the less likely an attacker's own key is near one of these: stronger,
            up to the number of features (`key_theory.effective_length`).
        fixed: whether the last layer is public, drawn from `layer_seed` and not trained: no trainable cost, whatever d
            is.
        features: units of a trained layer with leaky ReLU before the last one; None for none.
        weight_decay: \(\lambda\), at least 0.
        scale: s, above 0: a temperature. None for \(\sqrt d\), the length of the Gaussian keys of the paper's
            derivation, under which one learning rate does for all d and for the plain framework; its experiments have
            1, and steps that shrink with \(\sqrt d\).
        direct: whether the body's features are the embedding, brought to length 1 and otherwise as they are, without a
            layer of many dimensions: there must be `dimensions` of them.
        orthonormal: whether a party draws its keys at right angles to each other (by QR); at most `dimensions` classes.
        layer_seed: what the fixed layer and the head's initial weights are drawn from. Public.

    Example:
        >>> from leaktight.learning import classification
        >>> from leaktight.models import MLP
        >>> public = ClassKeys(dimensions=64).on_agree(classification(MLP().build((4,), classes=3, seed=0), (4,), 3))
        >>> local = Local("client-0", seed=0)
        >>> own = ClassKeys(dimensions=64).on_task(public, local)
        >>> list(own.public_parameters()), local.memory["keys"].shape
        (['body.linear1.weight', 'body.linear1.bias'], torch.Size([3, 64]))

    Differs from the paper: the public code keeps all keys in the shared model; here they are in nobody's model. Its
    layer norm learns a scale and a shift for each dimension, whose gradients would show the keys; here it learns
    nothing. Its fixed layer is a dense slice of an orthogonal matrix; here it has the same orthonormal columns and size
    of bias, but is a Kronecker product. The regularisation stands in each example's loss, so that a mean over a batch
    has it once; the public code has none. Keys at right angles and direct embeddings are those of section 5.5. Where
    two keys that were revealed for a class differ, the better counts.

    References:
        Sariyildiz, Cinbis and Ayday, "Key Protected Classification for Collaborative Learning", Pattern Recognition
        2020, sections 4.1 to 4.4, Algorithm 1, and the public code.
    """

    kind: Literal["class_keys"] = "class_keys"
    strength: ClassVar[Strength] = Strength("dimensions", "up", None, changes=False)
    knowable: ClassVar[frozenset[Knows]] = frozenset({Knows.KEYS})
    dimensions: int = Field(4096, ge=2, le=65_536)
    fixed: bool = True
    features: Annotated[int, Field(ge=1)] | None = None
    weight_decay: float = Field(0.0, ge=0)
    scale: Annotated[float, Field(gt=0)] | None = None
    # Left out where they are not used, so that settings of before they were there keep their keys.
    direct: bool = Field(False, exclude_if=lambda direct: not direct)
    orthonormal: bool = Field(False, exclude_if=lambda orthonormal: not orthonormal)
    layer_seed: int = 0

    @property
    def memoryless(self) -> bool:
        """Keys are drawn once, and learn nothing."""
        return True

    def channel(self, task: Task) -> Channel:
        """State that the task is the sender's own, with keys that it keeps."""
        return Channel(private_task=True)

    def on_agree(self, task: Task) -> Task:
        """Replace the head by an embedding, and the loss by one with keys that anybody can draw."""
        width = _width(task)
        if self.direct and (width != self.dimensions or self.features is not None):
            raise Refusal(
                f"class_keys embeds directly by as many features as keys have dimensions, {self.dimensions}. The "
                f"network has {width}; change `dimensions`, leave `features` out, or set `direct` to false."
            )
        if self.orthonormal and task.classes > self.dimensions:
            raise Refusal(
                f"class_keys needs at least as many dimensions as classes for keys at right angles. Got "
                f"{self.dimensions} for {task.classes} classes; use longer keys."
            )
        layer: Layer = "direct" if self.direct else "fixed" if self.fixed else "learned"
        head = EmbeddingHead(width, self.features, self.dimensions, layer, self.layer_seed).to(task.device)
        keys = self._draw_keys(task.classes, public_draws(self.layer_seed, "public keys")).to(task.device)
        return dataclasses.replace(
            task,
            model=Model(task.model.body, head, task.model.normalise),
            loss=lambda outputs, labels: self._loss(inner_products(outputs, keys, _weights(labels, keys))),
            predict=_nobody,
        )

    def on_task(self, task: Task, local: Local) -> Task:
        """Draw the party's keys and train for them."""
        if type(task.model) is not Model or not isinstance(task.model.head, EmbeddingHead):
            raise Refusal(
                "class_keys must see the agreed embedding. Put it first among the defences of a chain that change the "
                "task."
            )
        # Drawn once and kept in memory: where every message has a new key, they could not be drawn again.
        keys = self._draw_keys(task.classes, local.fixed_draws(self.kind, "keys"))
        local.memory.setdefault("keys", keys.to(task.device))
        head = task.model.head
        local.notes["class_keys.dimensions"] = float(self.dimensions)
        if self.fixed and not self.direct:
            through = min(_width(task), self.features or self.dimensions)
            local.notes["class_keys.effective_length"] = float(effective_length(self.dimensions, through))
        # Whoever scores applies the public part of the embedding, so the model ends with the trained one.
        parts = task.model.body, head.trained_part, task.model.normalise

        def loss(outputs: Tensor, labels: Tensor) -> Tensor:
            keys = local.memory["keys"]
            return self._loss(head.alignments(outputs, keys, _weights(labels, keys)))

        def predict(outputs: Tensor) -> Tensor:
            return _mask_foreign(head.scores(outputs, local.memory["keys"]), local)

        if not self.weight_decay:
            return dataclasses.replace(task, model=Model(*parts), loss=loss, predict=predict)
        return dataclasses.replace(
            task,
            model=RegularisedModel(*parts),
            loss=lambda outputs, labels: loss(outputs[0], labels) + self.weight_decay * outputs[1],
            predict=lambda outputs: predict(outputs[0]),
        )

    def on_close(self, local: Local) -> Tensors:
        """Reveal the keys of the party's classes, by class."""
        return {str(label): local.memory["keys"][label].clone() for label in local.classes}

    def on_reveal(self, task: Task, reveals: Sequence[Message]) -> Task:
        """Score every class by the best of its keys; a class without any key is never chosen."""
        pairs = [
            (self._check_key(name, key, message.sender, task), int(name))
            for message in reveals
            for name, key in message.tensors.items()
        ]
        labels = torch.tensor([label for _, label in pairs], dtype=torch.long, device=task.device)
        keys = torch.stack([key for key, _ in pairs]) if pairs else torch.zeros(0, self.dimensions, device=task.device)

        def predict(outputs: Tensor) -> Tensor:
            nothing = outputs.new_full((len(outputs), task.classes), -torch.inf)
            return nothing.scatter_reduce(1, labels.expand(len(outputs), -1), outputs @ keys.t(), "amax")

        return dataclasses.replace(task, predict=predict)

    def _draw_keys(self, count: int, draws: Draws) -> Tensor:
        draw = orthonormal_keys if self.orthonormal else random_keys
        return draw(count, self.dimensions, draws)

    def _loss(self, alignments: Tensor) -> Tensor:
        """Return each example's loss, from the inner product of its embedding with its own key."""
        return -alignments * (math.sqrt(self.dimensions) if self.scale is None else self.scale)

    def _check_key(self, name: str, key: Tensor, sender: str, task: Task) -> Tensor:
        """Check a key that somebody revealed, and bring it to length 1.

        A longer one would draw every image to its class.
        """
        if name not in {str(label) for label in range(task.classes)}:
            raise InvalidValue(
                f"A key of {sender} must be named by a class from 0 to {task.classes - 1}. Got `{name}` instead."
            )
        if tuple(key.shape) != (self.dimensions,) or not torch.isfinite(key).all() or not key.any():
            raise InvalidValue(
                f"The key of {sender} for class {name} must be {self.dimensions} finite numbers, not all 0. Got shape "
                f"{tuple(key.shape)}, or others."
            )
        return F.normalize(key.to(task.device), dim=0)


def _weights(labels: Tensor, keys: Tensor) -> Tensor:
    """Return how much of each class's key is in an example's own key, (examples, classes).

    Labels may themselves be shares of classes.
    """
    return (
        labels.to(keys.dtype)
        if labels.dim() == 2
        else torch.eye(len(keys), dtype=keys.dtype, device=keys.device)[labels]
    )


def _nobody(outputs: Tensor) -> Tensor:
    raise Refusal("No class can be scored before the participants reveal their keys. Train to the end first.")


def _mask_foreign(scores: Tensor, local: Local) -> Tensor:
    """Keep the scores of a party's own classes; it has nothing to score any other by."""
    foreign = torch.tensor([label not in local.classes for label in range(scores.shape[1])], device=scores.device)
    return scores.masked_fill(foreign, -torch.inf)


def _width(task: Task) -> int:
    """Return how many features one example has."""
    with torch.no_grad():
        return task.model.features(torch.zeros(1, *task.shape, device=task.device)).flatten(1).shape[1]
