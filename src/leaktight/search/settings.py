"""The settings of a search: everything that decides which policy is found."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SerializeAsAny, field_validator

from leaktight.core.device import DeviceName
from leaktight.core.value import Value
from leaktight.data.source import Source
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Adam, Optimiser
from leaktight.models.network import Network
from leaktight.probes.privacy_score import BLENDS, Similarity
from leaktight.transforms.library import LIBRARY

Method = Literal["racing", "random"]


class Search(Value):
    """Which policies are tried, on which data and network, and which are good enough.

    Args:
        data: images; the network is trained a little on some of the training part, and scores are taken on other images
            (see `material`).
        model: the network that will be trained on transformed images.
        candidates: C_max, how many policies are drawn, at least 1; more find better ones and take as much longer.
        functions: k, how many functions a policy has at most, 1 to 6.
        policies: n, how many policies are chosen, at least 1; the result is a hybrid of them.
        threshold: how many times worse than that of untransformed images the accuracy score may be, at least 1; larger
            is laxer.
        images: how many images each policy is scored on, at least 8.
        batches: over how many batches of so many images the accuracy score is a mean, at least 1; where there are too
            few images, batches share some.
        trained: how many of the most private candidates a model is trained with for real, briefly, before one is
            chosen; 0 chooses by both scores alone, as published.
        steps: how long each of these models is trained.
        loss: how much less accuracy than without a change such a model may have, in [0, 1].
        method: `racing` drops the clearly bad after a few images; `random` scores every candidate on all images, as
            published.
        library: the indices that policies are made of.
        epochs: how often the network sees its share of the training part before privacy is scored; 0 leaves it
            untrained.
        share: that share, in (0, 1].
        batch_size: examples per step of that training.
        optimiser: how that training steps.
        similarity: of gradients, `whole` or `per_tensor`.
        blends: points of the curve under which the area is taken, at least 2.
        normalise: whether inputs are standardised by public per-channel constants before the body.
        seed: what all randomness derives from.
        device: where tensors live.

    Example:
        >>> from leaktight.data import Photos
        >>> from leaktight.models import DLNet
        >>> Search(data=Photos(), model=DLNet()).candidates
        1500

    Differs from the paper: T_acc is relative to the score of untransformed images, so that it means the same for any
    network and number of images; racing is the default; the little training steps by Adam; a policy whose privacy score
    is no better than that of images as they are is never chosen; of what the scores leave, brief training runs choose.

    References:
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, Algorithm 1
        and section 5.
    """

    data: SerializeAsAny[Source]
    model: SerializeAsAny[Network]
    candidates: int = Field(1500, ge=1)
    functions: int = Field(3, ge=1, le=6)
    policies: int = Field(2, ge=1)
    threshold: float = Field(1.1, ge=1)
    images: int = Field(100, ge=8)
    batches: int = Field(10, ge=1)
    trained: int = Field(8, ge=0)
    steps: int = Field(300, ge=1)
    loss: float = Field(0.05, ge=0, le=1)
    method: Method = "racing"
    library: tuple[int, ...] = tuple(range(len(LIBRARY)))
    epochs: int = Field(50, ge=0)
    share: float = Field(0.1, gt=0, le=1)
    batch_size: int = Field(32, ge=1)
    optimiser: SerializeAsAny[Optimiser] = Adam()
    similarity: Similarity = "whole"
    blends: int = Field(BLENDS, ge=2)
    normalise: bool = True
    seed: int = 0
    device: DeviceName = "cpu"

    @field_validator("library")
    @classmethod
    def _check_library(cls, library: tuple[int, ...]) -> tuple[int, ...]:
        strange = [index for index in library if not 0 <= index < len(LIBRARY)]
        if strange:
            raise ValueError(f"must be made of indices in 0..{len(LIBRARY) - 1}. Got {strange[0]} instead.")
        if all(LIBRARY[index].identity for index in library):
            raise ValueError("must hold a function that changes an image. Got none instead.")
        return library

    def scenario(self) -> Federated:
        """Return the data and the network as a scenario.

        The task is made by it, and so are fingerprints of what data and network name.
        """
        return Federated(data=self.data, model=self.model, normalise=self.normalise, device=self.device)
