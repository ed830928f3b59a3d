"""Spectral: the feature party's own activations spread most along the line that divides the classes."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import Tensor

from leaktight.attacks.clustering import leading_direction
from leaktight.attacks.embedding_scores import EmbeddingAttack
from leaktight.core.attack import Principle


class Spectral(EmbeddingAttack):
    r"""Split the feature party's activations in two along the line on which they spread most; no label, no gradient.

    A bottom model that has learned to tell two classes apart puts them in different places. With activations \(a_i\),
    their mean \(\bar a\) and the leading right singular vector w of the rows \(a_i - \bar a\),

    .. math:: r_i = \langle a_i - \bar a, w \rangle .

    Noise on gradients does not stop it: what the model learns through the noise is what the activations tell. A
    singular vector has no sign, so which side is positive stays unknown: the reading is \(0.5 + |AUC - 0.5|\).

    Args:
        bottom: `trained`; or `initial`, the features-only baseline.

    Example:
        >>> import torch
        >>> nobody = torch.tensor([], dtype=torch.long)
        >>> scores = Spectral().score(torch.tensor([[5.0, 1.0], [5.1, 1.0], [1.0, 1.1], [1.1, 1.0]]), nobody, nobody)
        >>> (scores > 0).tolist() in ([True, True, False, False], [False, False, True, True])
        True

    Differs from the paper: It scores by the distance to two cluster centres; here by the place on the line, which ranks
    the same for two. The features-only baseline is ours.

    References:
        Sun et al., Label Leakage and Protection from Forward Embedding in Vertical Federated Learning, 2022.
    """

    kind: Literal["spectral"] = "spectral"
    principle: ClassVar[Principle] = "statistic"
    simple: ClassVar[bool] = True

    @property
    def signed(self) -> bool:
        """Never: a singular vector may point either way."""
        return False

    def score(self, embeddings: Tensor, known: Tensor, labels: Tensor) -> Tensor:
        """Return the places on the line."""
        centred = embeddings - embeddings.mean(0)
        return centred @ leading_direction(centred)
