"""Public: what the public examples of the same kind look like."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.errors import Refusal
from leaktight.core.task import Batch
from leaktight.priors.generic import generic_coordinates
from leaktight.priors.moments import FLOOR, RANK, Moments, Shrinkage, class_means, remainder, variances_of
from leaktight.priors.prior import Coordinates, Prior, Whitened

LEAST = 10
"""How many public examples it takes to say more than `generic` does."""
EVERY, MANY = 5, 1000
"""One of so many examples is held out to choose the shrinkage, in turn; once is enough above so many examples."""
WORTH = 0.005
"""The gain in nats per number that all directions together must bring, as each makes a search dearer; fewer, less."""
# What is tried: of two that are as good the first, which shrinks more.
PSEUDO_COUNTS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.0)
DIVISORS = (16, 8, 4, 2, 1)
WEIGHTS = (0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)


class Public(Prior):
    r"""Believe that examples look like public ones of the same kind: a Gaussian around the mean of their class.

    An example with label probabilities \(t\) is

    .. math:: x = G\left(\sum_c t_c m_c + D \left(\sqrt{\rho}\, z + U (\sqrt{v} - \sqrt{\rho})\, U^T z\right)\right),
        \qquad z \sim N(0, I),

    where \(G\) decodes the coordinates of the `generic` prior, and the rest is estimated in these: class means \(m_c\),
    the deviation \(D\) of each coordinate around them, the leading eigenvectors \(U\) of their correlations, at most
    512, the variances \(v\) along these and \(\rho\) in all other directions. Few public examples can say little of
    many pixels, so all are shrunk, by what gives held-out examples (every fifth) the best likelihood: class means to
    the mean of all, deviations to one for all, \(v\) to \(\rho\), and directions that are not worth their cost are left
    out. With nothing left of all this the prior is `generic` around another mean. Every example has a density.

    Held-out log likelihood in nats per pixel, of `generic` and with 50, 500 and 3,000 public examples: MNIST 0.58,
    0.68, 0.85, 1.45; Fashion-MNIST 0.62, 0.72, 0.81, 0.89; faces (LFW) 2.33, 3.39, 3.41, 3.44; CIFAR-10 2.10, 2.31,
    2.34, 2.34, where no directions are worth it and class means neither help nor hurt.

    A class without public examples has the mean of all. A label that is not known for sure mixes the means.

    Args:
        class_means: whether each class has a mean of its own.

    Example:
        >>> examples = torch.rand(50, 4, generator=torch.Generator().manual_seed(0))
        >>> public = Batch(examples, torch.arange(50) % 2)
        >>> coordinates = Public().coordinates((4,), nn.Identity(), public, 2)
        >>> coordinates.decode(torch.zeros(1, 4), torch.tensor([[1.0, 0.0]])).shape
        torch.Size([1, 4])
    """

    kind: Literal["public"] = "public"
    class_means: bool = True

    @property
    def needs_public(self) -> bool:
        """Always."""
        return True

    def coordinates(
        self, shape: tuple[int, ...], normalise: nn.Module, public: Batch | None, classes: int
    ) -> Coordinates:
        """Return coordinates in which the public examples' law is the standard normal one."""
        if public is None or len(public) < LEAST:
            count = 0 if public is None else len(public)
            raise Refusal(
                f"The prior public needs at least {LEAST} public examples. Got {count} instead; grant more, or take "
                "`generic`."
            )
        if tuple(public.inputs.shape[1:]) != shape:
            raise Refusal(
                f"The prior public needs public examples of shape {shape}. Got {tuple(public.inputs.shape[1:])} "
                "instead; bring them to that shape, or take `generic`."
            )
        labels = public.labels.long() if self.class_means else torch.zeros_like(public.labels, dtype=torch.long)
        generic = generic_coordinates(shape, normalise)
        points = generic.encode(public.inputs.float(), F.one_hot(labels, classes))
        moments = Moments.of(points, labels, classes, choose(points, labels, classes))
        if not self.class_means:
            moments = dataclasses.replace(moments, means=moments.means[:1].expand(classes, -1))
        return GaussianCoordinates(generic, moments)


class GaussianCoordinates(Whitened):
    """Whitened coordinates of a Gaussian law that is given by its moments in other coordinates.

    Args:
        base: the other coordinates.
        moments: means and covariance in these.
    """

    def __init__(self, base: Coordinates, moments: Moments) -> None:
        super().__init__(base.shape)
        self._base, self._rest = base, math.sqrt(moments.rest)
        self._tensors = (moments.means, moments.scales, moments.directions, moments.variances.sqrt())

    @property
    def width(self) -> int:
        """As many as the other coordinates have."""
        return self._base.width

    def steps(self) -> Tensor:
        """Return steps as long as those in the other coordinates, but for what the leading directions change."""
        return (self._base.steps().to(self._tensors[1]) / (self._tensors[1] * self._rest)).clamp_max(1.0)

    def decode(self, z: Tensor, targets: Tensor) -> Tensor:
        """Return the examples at these coordinates, around the means of their classes."""
        means, scales, directions, leading = self._constants(z)
        deviation = self._rest * z + ((z @ directions) * (leading - self._rest)) @ directions.T
        return self._base.decode(targets.to(z.dtype) @ means + scales * deviation, targets)

    def encode(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the coordinates of examples of these classes."""
        means, scales, directions, leading = self._constants(inputs)
        deviation = (self._base.encode(inputs, targets) - targets.to(inputs.dtype) @ means) / scales
        return deviation / self._rest + ((deviation @ directions) * (1 / leading - 1 / self._rest)) @ directions.T

    def _constants(self, like: Tensor) -> tuple[Tensor, ...]:
        return tuple(constant.to(like.device, like.dtype) for constant in self._tensors)


def choose(points: Tensor, labels: Tensor, classes: int) -> Shrinkage:
    """Return the shrinkage that gives held-out points the best likelihood under the moments of the others.

    Args:
        points: (n, width), at least `LEAST`.
        labels: (n,).
        classes: how many there are.
    """
    place = torch.arange(len(points), device=points.device) % EVERY
    folds = [place == fold for fold in range(EVERY if len(points) <= MANY else 1)]
    trials = [_Fold(points[~held], labels[~held], points[held], labels[held], classes) for held in folds]
    means = min(PSEUDO_COUNTS, key=lambda count: sum(trial.misfit(count) for trial in trials))
    scales = min(PSEUDO_COUNTS, key=lambda count: sum(trial.scale_surprise(means, count) for trial in trials))
    spectra = [trial.spectrum(Shrinkage(means, scales, min(len(trial.points) // 2, RANK))) for trial in trials]
    most = min(len(spectrum.own) for spectrum in spectra)
    options = [(most // divisor, weight) for divisor in DIVISORS for weight in WEIGHTS] + [(0, 1.0)]
    price = 2 * WORTH * points.shape[1] * len(spectra) / RANK
    rank, weight = min(
        options, key=lambda option: price * option[0] + sum(spectrum.surprise(*option) for spectrum in spectra)
    )
    rest = sum(spectrum.rest(rank) for spectrum in spectra) / len(spectra)
    return Shrinkage(means, scales, rank, weight, rest)


@dataclasses.dataclass(frozen=True)
class _Fold:
    """Points to estimate moments from, and others to try them on."""

    points: Tensor
    labels: Tensor
    held: Tensor
    held_labels: Tensor
    classes: int

    def deviations(self, pseudo_count: float) -> tuple[Tensor, Tensor]:
        """Return how far points and held-out ones are from their class means."""
        means = class_means(self.points, self.labels, self.classes, pseudo_count)
        return self.points - means[self.labels], self.held - means[self.held_labels]

    def misfit(self, pseudo_count: float) -> float:
        """Return how far held-out points are from their class means, squared and summed."""
        return float(self.deviations(pseudo_count)[1].square().sum())

    def scale_surprise(self, means: float, pseudo_count: float) -> float:
        """Return how badly the variances of single numbers suit held-out points."""
        own, held = self.deviations(means)
        return _surprise(variances_of(own, pseudo_count), held.square().mean(0))

    def spectrum(self, shrinkage: Shrinkage) -> _Spectrum:
        """Return the variances of points and held-out ones along the leading directions of the former."""
        moments = Moments.of(self.points, self.labels, self.classes, shrinkage)
        held = (self.held - moments.means[self.held_labels]) / moments.scales
        return _Spectrum(
            moments.variances, (held @ moments.directions).square().mean(0), held.square().mean(0).sum(), held.shape[1]
        )


@dataclasses.dataclass(frozen=True)
class _Spectrum:
    """Variances along leading directions, largest first.

    They are those of points, of held-out points, and of held-out points in all directions.
    """

    own: Tensor
    seen: Tensor
    total: Tensor
    width: int

    def rest(self, rank: int) -> float:
        """Return the variance of held-out points in all but so many directions."""
        return max(remainder(self.total, self.seen[:rank].sum(), self.width, rank), FLOOR)

    def surprise(self, rank: int, weight: float) -> float:
        """Return how badly so many directions, so far drawn towards the rest, suit held-out points."""
        rest = self.rest(rank)
        beyond = (self.total - self.seen[:rank].sum()).clamp_min(0).double() / rest + (self.width - rank) * math.log(
            rest
        )
        return _surprise(((1 - weight) * self.own[:rank] + weight * rest).clamp_min(FLOOR), self.seen[:rank]) + float(
            beyond
        )


def _surprise(variances: Tensor, squares: Tensor) -> float:
    """Return twice the mean of minus the log likelihood of points with these mean squares, up to a constant."""
    return float((variances.double().log() + squares.double() / variances.double()).sum())
