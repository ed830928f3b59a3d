"""Wide & Deep: embeddings and a deep network beside a linear model, for tables with many categories."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from leaktight.data.columns import Columns
from leaktight.models.layers import Activation, activation
from leaktight.models.network import Network
from leaktight.models.tabular import Encoded


class WideDeep(Network):
    """Embeddings for categories, hidden layers and a linear head; and a linear model beside it.

    For each hidden width there is a linear layer and an activation.

    In split learning the feature party has embeddings and deep part, the label party the head and the wide part, which
    takes the columns that the label party holds. Trained by one party, on numbers or images, all inputs go to both
    parts.

    Args:
        hidden: the width of each layer of the deep part, at least one.
        embedding: how many numbers stand for a category.
        activation: after each hidden layer.

    Example:
        >>> deep, head = WideDeep(hidden=(16, 8)).of_columns(Columns(("age", "job"), (0, 5)), classes=2)
        >>> [name for name, _ in deep.named_children()]
        ['encoded', 'linear1', 'relu1', 'linear2', 'relu2']

    Differs from the paper: Two outputs with softmax in place of one logit with a sigmoid: the same function and, with
    the cut before the head, cut gradients of the same form, (p - y) times a vector that all examples share, but the
    logit takes steps of twice the size. Neither paper says how embeddings start: here from N(0, 0.01). The wide part
    has no crossed columns and no optimiser of its own.

    References:
        Cheng et al., Wide & Deep Learning for Recommender Systems, 2016; Li et al., Label Leakage and Protection in
        Two-party Split Learning, Section 4: embeddings and four layers of 128 at the passive party. Its later code has
        six, cut after the third; the width 4 of embeddings is from there.
    """

    kind: Literal["wide_deep"] = "wide_deep"
    hidden: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (128, 128, 128, 128)
    embedding: Annotated[int, Field(ge=1)] = 4
    activation: Activation = "relu"

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return deep part and inputs side by side, and one linear layer over both: the head and the wide part."""
        width = math.prod(shape)
        deep, _ = self.of_columns(Columns.plain(width), classes)
        return _Beside(deep), nn.Linear(self.hidden[-1] + width, classes)

    def of_columns(self, columns: Columns, classes: int) -> tuple[nn.Module, nn.Module]:
        """Return embeddings with the deep part, and the head."""
        encoded = Encoded(columns, self.embedding)
        layers: OrderedDict[str, nn.Module] = OrderedDict(encoded=encoded)
        width = encoded.width
        for number, wanted in enumerate(self.hidden, 1):
            layers[f"linear{number}"] = nn.Linear(width, wanted)
            layers[f"{self.activation}{number}"] = activation(self.activation)
            width = wanted
        return nn.Sequential(layers), nn.Linear(width, classes)


class _Beside(nn.Module):
    """A network's outputs, and after them its inputs."""

    def __init__(self, deep: nn.Module) -> None:
        super().__init__()
        self.deep = deep

    def forward(self, inputs: Tensor) -> Tensor:
        """Return both, flat."""
        rows = inputs.flatten(1)
        return torch.cat([self.deep(rows), rows], 1)
