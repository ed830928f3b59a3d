"""Peeling: read one example of a batch off rows of the gradient where it is alone, take it out, and repeat."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.attacks.linear_layer import LinearLayer

NEAR = 1e-3
"""How far from the right one a reading may be to be certified, as a share of the box, by what noise is there."""
FITS = 1e-2
"""How much of an example's own slopes may lie outside of those that the gradient is made of."""
AGREES = 1e-3
"""How far the bias gradient of a row may be from the example's own."""
SAME = 0.03
"""How far apart two readings of one example may be, as a share of its length."""
SILENT = 1e-5
"""Below which size a slope counts as zero, of slopes of length 1 without noise."""
EDGE = 1e-4
"""How small an activation may be, as a share of the largest, to count as either active or not."""
SPARE = 8
"""How many more units than examples there must be: by so many equations a certificate is overdetermined."""


@dataclasses.dataclass(frozen=True)
class Peeled:
    """What was read off a gradient.

    Args:
        seen: what the layer saw of each certified example, (examples, width + 1), the last entry 1.
        slopes: the gradient of each one's loss at the layer's outputs, times its weight in the mean, (examples, units).
        labels: the label of each, -1 where the loss is not known.
        rest: the gradient without these examples.
        left: how many examples are behind the rest.
        weight: of one example in the mean, as far as it is known.
        noise: what is known of the standard deviation of its entries, at least 0.
    """

    seen: Tensor
    slopes: Tensor
    labels: Tensor
    rest: Tensor
    left: int
    weight: float
    noise: float = 0.0

    @classmethod
    def nothing(cls, gradient: Tensor, examples: int, noise: float = 0.0) -> Peeled:
        """Return what is known before anything is read."""
        return cls(
            gradient[:0],
            gradient.new_zeros(0, len(gradient)),
            torch.zeros(0, dtype=torch.long),
            gradient,
            examples,
            1 / examples,
            noise,
        )

    def spectrum(self) -> Spectrum:
        """Return the rest by its singular values."""
        return Spectrum.of(self.rest, self.left, self.noise)

    def take(self, seen: Tensor, slopes: Tensor, labels: Tensor, weight: float) -> Peeled:
        """Return the same with some more examples taken out of the rest, at most as many as are left."""
        seen, slopes, labels = seen[: self.left], slopes[: self.left], labels[: self.left]
        return Peeled(
            torch.cat([self.seen, seen]),
            torch.cat([self.slopes, slopes]),
            torch.cat([self.labels, labels]),
            self.rest - slopes.T @ seen,
            self.left - len(seen),
            weight,
            self.noise,
        )


@dataclasses.dataclass(frozen=True)
class Spectrum:
    """The singular values and vectors of what is left of a gradient, as far as they exceed the noise.

    Args:
        noise: the standard deviation of what each entry is off.
        left: orthonormal columns that span the slopes of all examples, (units, rank).
        values: the singular values, falling.
        right: orthonormal columns that span what the layer saw, (width + 1, rank).
    """

    noise: float
    left: Tensor
    values: Tensor
    right: Tensor

    @classmethod
    def of(cls, rest: Tensor, examples: int, noise: float = 0.0) -> Spectrum:
        """Split a gradient of at most so many examples, with at least so much noise."""
        left, values, right = torch.linalg.svd(rest, full_matrices=False)
        # A gradient of n examples has rank n: what it has beyond is noise. Rounding is noise too.
        free = (rest.shape[0] - examples) * (rest.shape[1] - examples)
        beyond = values[examples:].square().sum().item()
        rounding = torch.finfo(torch.float32).eps * rest.abs().max().item() / 4
        noise = max(noise, rounding, (beyond / free) ** 0.5 if len(values) > examples else 0.0)
        # The largest singular value of noise alone.
        edge = 2 * noise * (rest.shape[0] ** 0.5 + rest.shape[1] ** 0.5)
        rank = min(int((values > edge).sum()), examples)
        return cls(noise, left[:, :rank], values[:rank], right[:rank].T)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def matrix(self) -> Tensor:
        """The gradient without the noise that lies outside of its rank."""
        return (self.left * self.values) @ self.right.T

    @property
    def tilt(self) -> float:
        """How far the space of the slopes is off, as the sine of an angle."""
        if not len(self):
            return 1.0
        return float(self.noise * len(self.left) ** 0.5 / self.values[-1])

    def weigh(self, slopes: Tensor, seen: Tensor) -> Tensor:
        """Return the weight of each example, (examples,): taking out that much lowers the gradient's rank."""
        inner = ((seen @ self.right) / self.values * (slopes @ self.left)).sum(1)
        return 1 / torch.where(inner == 0, torch.inf, inner)


def peel(peeled: Peeled, layer: LinearLayer, *, public: bool) -> Peeled:
    r"""Take all examples out of a gradient that can be read off rows of it, and are certified.

    A row of \(M = \sum_i c_i \delta_i y_i^T\) where only one example is active is a multiple of y. So each row gives a
    candidate y with last entry 1; rows that agree are read together. A candidate is certified

    - by the public loss: its own slopes \(\delta\), for one of the labels, lie in the column space of M; and its rows
      have the bias gradient \(c \delta\) for its weight c in the mean, or at least two of them agree. The label comes
      along.
    - by any loss: at least two rows agree, and there are slopes in the column space of M that are zero where the
      candidate is not active, and nowhere else.

    Then \(c \delta y^T\) is taken out, which lowers the rank of M by one and leaves other examples alone in rows, until
    nothing new is found. Noise is told by what M has beyond its rank. Where it makes readings worse than a thousandth
    of the box, none is certified.

    Args:
        peeled: what was read before.
        layer: the layer, followed by a ReLU.
        public: whether the loss is the public one; else slopes are read off the gradient.

    Differs from the paper: certificates test the slopes of all units instead of the candidate's own rows alone, as
    single precision and noise ask for; an example may have another weight than the batch size says, as after clipping.

    References: Shariati and Meybodi 2026, gradient inversion as the decoding of LT codes.
    """
    while peeled.left:
        spectrum = peeled.spectrum()
        if not len(spectrum) or len(spectrum) + SPARE > len(peeled.rest):
            return peeled
        seen, rows = candidates(spectrum, layer)
        certify = certify_by_loss if public else certify_by_zeros
        certified = certify(spectrum, layer, seen, rows, peeled.weight)
        if not len(certified.seen):
            return peeled
        new = _distinct(torch.cat([peeled.seen, certified.seen]))[len(peeled.seen) :]
        if not bool(new.any()):
            return peeled
        peeled = peeled.take(certified.seen[new], certified.slopes[new], certified.labels[new], certified.weight)
    return peeled


def _distinct(seen: Tensor) -> Tensor:
    """Return which vectors differ from all before them, so that two readings of one example are taken out once."""
    apart = torch.cdist(seen, seen) / seen.norm(dim=1).clamp(min=1e-300)
    repeated: Tensor = (apart < SAME).tril(-1).any(1)
    return ~repeated


@dataclasses.dataclass(frozen=True)
class Certified:
    """Examples that passed a check: what the layer saw of them, their slopes times their weights, and their labels.

    Beside them the weight of one example in the mean, which may have been measured.
    """

    seen: Tensor
    slopes: Tensor
    labels: Tensor
    weight: float

    @classmethod
    def nothing(cls, layer: LinearLayer, weight: float) -> Certified:
        """Return no examples."""
        empty = layer.weight[:0]
        return cls(empty, empty.new_zeros(0, len(layer.weight)), torch.zeros(0, dtype=torch.long), weight)


def candidates(spectrum: Spectrum, layer: LinearLayer) -> tuple[Tensor, Tensor]:
    """Return the examples that may be alone in rows, (candidates, width + 1), and these rows, (candidates, units).

    Those with most rows come first. A candidate lies in the box and is active at its own rows.
    """
    matrix = spectrum.matrix
    scale, size = matrix[:, -1], matrix.norm(dim=1)
    # What noise does to a row of the layer's own rank, in units of the box.
    unit = 1.0 if layer.low is None or layer.high is None else (layer.high - layer.low).min().item()
    blur = spectrum.noise * size / scale.square().clamp(min=1e-300) / unit
    usable = (blur < NEAR) & (scale != 0)
    y = matrix / torch.where(scale == 0, 1.0, scale)[:, None]
    usable &= (layer.outside(y) < 10 * NEAR) & ((layer.weight * y).sum(1) > 0)
    places = usable.nonzero()[:, 0]
    if not len(places):
        return y[:0], usable[None][:0]
    units = matrix[places] / size[places, None]
    cosine = (units @ units.T).abs().clamp(max=1.0)
    reach = 1e-6 + 4 * spectrum.noise * (len(spectrum) + 1) ** 0.5 / size[places]
    alike = (2 - 2 * cosine).clamp(min=0).sqrt() < (reach[:, None] + reach).clamp(max=0.1)
    readings, groups, free = [], [], torch.ones(len(places), dtype=torch.bool, device=matrix.device)
    for place in (alike.sum(1) * 1e6 + size[places] / size.max()).argsort(descending=True).tolist():
        if not free[place]:
            continue
        members = alike[place] & free
        free &= ~members
        rows = torch.zeros_like(usable)
        rows[places[members]] = True
        # All rows of one example at once: each is its y times a slope, so their weighted mean has the least noise.
        own = matrix[rows]
        mean = (own * own[:, -1:]).sum(0)
        readings.append(mean / mean[-1])
        groups.append(rows)
    return torch.stack(readings), torch.stack(groups)


def certify_by_loss(spectrum: Spectrum, layer: LinearLayer, seen: Tensor, rows: Tensor, weight: float) -> Certified:
    """Return the candidates that the public loss confirms, with their labels.

    Args:
        spectrum: of the gradient.
        layer: the layer.
        seen: the candidates.
        rows: the rows where each is alone, (candidates, units); none if it was not read off rows.
        weight: of one example in the mean.
    """
    if not len(seen):
        return Certified.nothing(layer, weight)
    slopes = layer.slopes(seen)
    size = slopes.norm(dim=2).clamp(min=1e-300)
    within = (slopes @ spectrum.left).norm(dim=2) / size
    misfit, labels = (1 - within.square()).clamp(min=0).sqrt().min(1)
    own = slopes[torch.arange(len(seen)), labels]
    fits = misfit < FITS + min(4 * spectrum.tilt, 0.05)
    weights = spectrum.weigh(own, seen)
    agreed = fits & (rows.sum(1) > 1)
    # Clipping or a secret factor changes the weight of all examples alike; where two rows agree, it is measured.
    measured = weights[agreed].median().item() if bool(agreed.any()) else weight
    weight = measured if abs(measured / weight - 1) > FITS else weight
    bias = spectrum.matrix[:, -1]
    blur = AGREES * bias.abs() + 10 * spectrum.noise
    by_weight = ((bias - weight * own).abs() < blur) | ~rows
    alone = rows.any(1) & by_weight.all(1)
    passed = agreed | (fits & alone)
    slopes = own * torch.where(alone, weight, weights)[:, None]
    return Certified(seen[passed], slopes[passed], labels[passed], weight)


def certify_by_zeros(spectrum: Spectrum, layer: LinearLayer, seen: Tensor, rows: Tensor, weight: float) -> Certified:
    """Return the first candidate that fits under any loss, with slopes read off the gradient; its label is unknown.

    One at a time: its slopes follow from the gradient that is left.
    """
    for y, own in zip(seen, rows, strict=True):
        if int(own.sum()) < 2:
            continue
        z = layer.weight @ y
        slopes, misfit = slopes_of_pattern(spectrum, z)
        # The mean of two examples has their slopes in common, but is active where one of them is not.
        silent = slopes.abs() < SILENT + 20 * spectrum.tilt / len(z) ** 0.5
        if misfit < FITS + min(4 * spectrum.tilt, 0.05) and not bool(silent[z > EDGE * z.abs().max()].any()):
            slopes = slopes * spectrum.weigh(slopes[None], y[None])
            return Certified(y[None], slopes[None], torch.full((1,), -1), weight)
    return Certified.nothing(layer, weight)


def slopes_of_pattern(spectrum: Spectrum, z: Tensor) -> tuple[Tensor, float]:
    """Return the slopes in a gradient's column space that come closest to zero where z is negative, and how close.

    How close is a share of their length; it is 1 where too few units are inactive to tell.
    """
    silent = spectrum.left[z < 0]
    if len(silent) < len(spectrum) + SPARE:
        return torch.zeros_like(z), 1.0
    values, vectors = torch.linalg.eigh(silent.T @ silent)
    slopes: Tensor = spectrum.left @ vectors[:, 0]
    return torch.where(z < 0, 0.0, slopes), values[0].clamp(min=0).sqrt().item()
