"""Ridge inverter: from messages to the examples behind them, by regression on messages whose examples are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.attacks.label_reading import deal

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""What the ridge penalties are chosen from."""
OWN_CLASS = (0.0, 16.0)
"""What is chosen from as to how much more messages with the same label count than others."""


@dataclasses.dataclass(frozen=True)
class KnownMessages:
    """Messages whose examples are known.

    Args:
        rows: a sketch of each, (messages, width).
        inputs: the examples behind each, flat, (messages, examples, numbers).
        labels: the labels that these had, (messages, examples).
    """

    rows: Tensor
    inputs: Tensor
    labels: Tensor

    @classmethod
    def join(cls, parts: Sequence[KnownMessages]) -> Self:
        """Return the messages of several, one after the other."""
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in dataclasses.fields(cls)))


class RidgeInverter:
    r"""Kernel ridge regression from a message and a label to the mean of the examples with that label behind it.

    For messages with sketches \(z_i\), centred and of mean square length 1, and every label c behind message i, the
    target is how far the mean of its examples of label c is from the mean \(\mu_c\) of the class. A linear map from
    messages to examples that is partly common to all labels, and partly each label's own, is regression with the kernel

    .. math:: k((z, c), (z', c')) = \langle z, z' \rangle \, (1 + w [c = c']),

    and the answer is \(\hat x = \mu_c + \sum_j \alpha_j k((z, c), (z_j, c_j))\) with
    \(\alpha = (K + \lambda I)^{-1} (x - \mu)\). The gradient of one example is nearly linear in it once the label is
    known, so that little is lost against a network. Labels come first: their shares are regressed on z alone, and dealt
    out one by one.

    In the end the answer is drawn to the mean of all examples, as far as that brings those behind messages that were
    held out nearer. So where messages tell nothing, that mean is answered, and where they tell labels alone, the means
    of classes.

    Args:
        known: messages to learn from, at least 2.
        means: \(\mu_c\), the mean example of each class, flat, (classes, numbers).
        held_out: how many of the messages, the last ones, are held out to choose \(\lambda\) and w by; with these all
            are learned from. At least 1; no example should be behind a message of both kinds.

    Example:
        >>> inputs = torch.rand(30, 1, 2, generator=torch.Generator().manual_seed(0))
        >>> known = KnownMessages(inputs[:, 0] @ torch.eye(2, 5), inputs, torch.zeros(30, 1, dtype=torch.long))
        >>> examples, labels = RidgeInverter(known, inputs.mean(0), held_out=5).answer(known.rows[:3], 1)
        >>> bool((examples - inputs[:3]).abs().max() < 0.05)
        True
    """

    def __init__(self, known: KnownMessages, means: Tensor, held_out: int) -> None:
        self._means, self._middle = means, known.inputs[-held_out:].mean((0, 1))
        self._centre = known.rows.mean(0)
        self._scale = (known.rows - self._centre).square().sum(1).mean().sqrt().clamp_min(1e-12)
        self._rows = (known.rows - self._centre) / self._scale
        shares = F.one_hot(known.labels, len(means)).double().mean(1)
        self._usual = shares.mean(0)
        self._messages, self._labels = (shares > 0).nonzero(as_tuple=True)
        own = (known.labels[self._messages] == self._labels[:, None]).float()[..., None]
        # Of several examples with one label nothing but their mean can be told.
        targets = (own * known.inputs[self._messages]).sum(1) / own.sum(1) - means[self._labels]
        self._fit(known, shares, targets.double(), held_out)

    def answer(self, rows: Tensor, examples: int) -> tuple[Tensor, Tensor]:
        """Return the likely examples behind messages, flat, by rising label, and their labels."""
        answers, labels = self._answer(self._products(rows), examples)
        return self._middle + self._trust * (answers - self._middle), labels

    def _fit(self, known: KnownMessages, shares: Tensor, targets: Tensor, held_out: int) -> None:
        """Choose the settings by messages that are not learned from, and learn from all."""
        products, wanted = self._products(known.rows), _by_label(known.inputs[-held_out:], known.labels[-held_out:])
        learned = torch.arange(len(shares), device=shares.device) < len(shares) - held_out
        every, examples = torch.ones_like(learned), known.labels.shape[1]

        def fit_labels(penalty: float, chosen: Tensor) -> None:
            self._of_labels = _solve(products, shares - self._usual, penalty, chosen)

        def fit_examples(penalty: float, own_class: float, chosen: Tensor) -> None:
            self._own_class = own_class
            kernel = self._kernel(products[self._messages], self._labels)
            self._of_examples = _solve(kernel, targets, penalty, chosen[self._messages])

        def label_misfit(penalty: float) -> float:
            fit_labels(penalty, learned)
            return (self._shares(products[-held_out:]) - shares[-held_out:]).square().mean().item()

        def misfit(settings: tuple[float, float]) -> float:
            fit_examples(*settings, learned)
            return (self._answer(products[-held_out:], examples)[0] - wanted).square().mean().item()

        label_penalty = min(PENALTIES, key=label_misfit)
        fit_labels(label_penalty, learned)
        penalty, own_class = min(((p, w) for w in OWN_CLASS for p in PENALTIES), key=misfit)
        fit_examples(penalty, own_class, learned)
        offsets = self._answer(products[-held_out:], examples)[0] - self._middle
        self._trust = ((offsets * (wanted - self._middle)).sum() / offsets.square().sum().clamp_min(1e-12)).clamp(0, 1)
        fit_labels(label_penalty, every)
        fit_examples(penalty, own_class, every)

    def _answer(self, products: Tensor, examples: int) -> tuple[Tensor, Tensor]:
        labels = torch.stack([deal(examples * shares, examples) for shares in self._shares(products)])
        flat = labels.flatten()
        offsets = self._kernel(products.repeat_interleave(examples, 0), flat) @ self._of_examples
        return (self._means[flat] + offsets.to(self._means)).view(len(labels), examples, -1), labels

    def _shares(self, products: Tensor) -> Tensor:
        """Return what share of the examples behind each message seems to have each label."""
        return products @ self._of_labels + self._usual

    def _products(self, rows: Tensor) -> Tensor:
        """Return the inner products of sketches with those of the messages learned from."""
        return (((rows - self._centre) / self._scale) @ self._rows.T).double()

    def _kernel(self, products: Tensor, labels: Tensor) -> Tensor:
        """Return the kernel of messages under labels with every pair of message and label."""
        return products[:, self._messages] * (1 + self._own_class * (labels[:, None] == self._labels[None]))


def _solve(kernel: Tensor, targets: Tensor, penalty: float, chosen: Tensor) -> Tensor:
    """Return the weights of a regression on the chosen rows, and zero for all others."""
    damped = kernel[chosen][:, chosen] + penalty * torch.eye(
        int(chosen.sum()), dtype=kernel.dtype, device=kernel.device
    )
    weights = torch.zeros_like(targets)
    weights[chosen] = torch.cholesky_solve(targets[chosen], torch.linalg.cholesky(damped))
    return weights


def _by_label(inputs: Tensor, labels: Tensor) -> Tensor:
    """Return examples (messages, examples, numbers), those of each message by rising label."""
    return inputs.take_along_dim(labels.argsort(dim=1, stable=True)[..., None], 1)
