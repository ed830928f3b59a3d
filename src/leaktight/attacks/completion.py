"""Model completion: with a few known labels, the feature party trains a head for its own bottom model."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.embedding_scores import EmbeddingAttack
from leaktight.core.attack import Principle
from leaktight.core.threat import Knows

_ITERATIONS = 15


class Completion(EmbeddingAttack):
    r"""Learn a head for the feature party's own bottom model from a few known labels, and score all other rows by it.

    The head is a linear one on standardised activations \(z_i\), fitted to the known rows \(K\), then again to all rows
    with its own predictions \(q_j\) in the place of labels that are not known, as often as `rounds` says:

    .. math:: \min_w \frac{1}{|K|} \sum_{i \in K} \ell(\langle w, z_i \rangle, y_i)
        + \frac{\lambda}{n} \sum_{j \notin K} \ell(\langle w, z_j \rangle, q_j) + \frac{\rho}{2} \|w\|^2

    with the logistic loss and each class of the known rows weighted alike. Rows whose label is known are not scored.
    The baseline is the same head on the initial bottom model: what a few labels and the features give without a
    gradient.

    Args:
        labels: how many known labels are used at most, half of each class, from the first messages on; more is
            stronger.
        rounds: how often the head learns from its own predictions; 0 uses known labels alone.
        weight: \(\lambda\), of rows without a known label.
        penalty: \(\rho\), of the head's size.
        bottom: `trained`; or `initial`, the features-only baseline.

    Example:
        >>> rows = torch.tensor([[5.0, 1.0], [5.1, 1.0], [1.0, 1.0], [1.1, 1.0]])
        >>> scores = Completion().score(rows, torch.tensor([0, 2]), torch.tensor([1, 0]))
        >>> bool(scores[1] > scores[3])
        True

    Differs from the paper: Its head is a network trained by MixMatch; here a linear one that learns from its own
    predictions. Its active variant, which lets the own learning rate grow, is not there.

    References:
        Fu et al., Label Inference Attacks Against Vertical Federated Learning, USENIX Security 2022.
    """

    kind: Literal["completion"] = "completion"
    principle: ClassVar[Principle] = "learned"
    simple: ClassVar[bool] = True
    labels: int = Field(40, ge=2)
    rounds: int = Field(2, ge=0)
    weight: float = Field(0.3, ge=0)
    penalty: float = Field(0.1, gt=0)

    @property
    def needs(self) -> frozenset[Knows]:
        """Hints."""
        return frozenset({Knows.HINTS})

    @property
    def labels_used(self) -> int:
        """As many as are asked for."""
        return self.labels

    def score(self, embeddings: Tensor, known: Tensor, labels: Tensor) -> Tensor:
        """Return the head's scores of all rows."""
        rows = embeddings.double()
        rows = (rows - rows.mean(0)) / rows.std(0).clamp_min(1e-9)
        rows = torch.cat([rows, rows.new_ones(len(rows), 1)], 1)
        targets, weights = labels.double(), torch.empty(len(labels), dtype=torch.float64)
        for label in (0, 1):
            weights[labels == label] = 0.5 / max(1, int((labels == label).sum()))
        head = _fit(rows[known], targets, weights, self.penalty)
        others = torch.ones(len(rows), dtype=torch.bool)
        others[known] = False
        for _ in range(self.rounds if self.weight and others.any() else 0):
            every = torch.cat([rows[known], rows[others]])
            predicted = torch.sigmoid(rows[others] @ head)
            share = torch.full((len(predicted),), self.weight / len(predicted), dtype=torch.float64)
            head = _fit(every, torch.cat([targets, predicted.round()]), torch.cat([weights, share]), self.penalty)
        return rows @ head


def _fit(rows: Tensor, targets: Tensor, weights: Tensor, penalty: float) -> Tensor:
    """Return the head of least weighted logistic loss, by Newton's method; its constant term is not penalised."""
    ridge = torch.full((rows.shape[1],), penalty, dtype=rows.dtype)
    ridge[-1] = 1e-6
    head = rows.new_zeros(rows.shape[1])
    for _ in range(_ITERATIONS):
        predicted = torch.sigmoid(rows @ head)
        slope = rows.T @ (weights * (predicted - targets)) + ridge * head
        bend = (rows * (weights * predicted * (1 - predicted))[:, None]).T @ rows + torch.diag(ridge)
        head = head - torch.linalg.solve(bend, slope)
    return head
