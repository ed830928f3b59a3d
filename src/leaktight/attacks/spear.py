"""SPEAR: all examples of a batch together, by the zeros that a ReLU leaves in the slopes of each, for any loss."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.attacks.linear_layer import LinearLayer
from leaktight.attacks.peeling import EDGE, SPARE, Spectrum
from leaktight.core.random import Stream

MOST = 20
"""Behind how many examples draws find anything."""
CHUNK = 512
"""How many draws are worked on at once; after each the attack looks whether it is done."""
WIDTHS = tuple(0.1 * 0.01 ** (step / 9) for step in range(10))
"""What counts as about zero while a direction is fitted, step by step: the cosine of a unit's row with it."""
BLURRED = 0.02
"""How large zeros may be under noise, as the cosine of a unit's row with a direction; above, SPEAR finds nothing."""
INDEPENDENT = 1e-4
"""How much of a direction must lie outside of the span of others."""
TILTS = (4.0, 2.0, 0.0)
"""How strongly draws prefer units with small slopes, in turn."""


@dataclasses.dataclass(frozen=True)
class Disentangled:
    """Examples whose slopes together make a gradient.

    Args:
        seen: what the layer saw of each, (examples, width + 1), the last entry 1; best first.
        slopes: the slopes of each times its weight in the mean, (examples, units).
        agreement: for each the share of units that are silent by its slopes and by its own activation alike: 1 is a
            certificate.
    """

    seen: Tensor
    slopes: Tensor
    agreement: Tensor


def disentangle(spectrum: Spectrum, layer: LinearLayer, starts: Tensor, draws: int, rng: Stream) -> Disentangled | None:
    r"""Split a gradient of b examples behind a ReLU into those of each; None if too few directions are found.

    The gradient is \(M = U S R\) with b columns in U, and the slopes of each example are \(\delta_i = U q_i\) for some
    q, zero at units where it is not active: about half of them. Directions q come from draws of b - 1 units that are
    set to zero, and from the units where a start is not active. Those with many more zeros than they were made with are
    kept. Of these the basis with most zeros is chosen greedily, and then one direction at a time is exchanged for
    another as long as that raises

    .. math:: \lambda = \frac{1}{b m} \left| \{ (i, j) : (\delta_{ij} = 0) = (z_{ij} \le 0) \} \right| ,

    where z are the activations of the examples that the basis implies: \(Q^{-1} S R\), scaled so that the last entry,
    which the bias saw, is 1. Only rank and zeros are used, so that a private loss changes nothing.

    Args:
        spectrum: of the gradient.
        layer: the layer, followed by a ReLU.
        starts: activations of examples that may be near a true one, (starts, units).
        draws: how many draws of units.
        rng: where they come from.

    Differs from the paper: directions also come from starts; draws are fitted anew to the units where they are
    smallest; the basis is chosen by its zeros first, by \(\lambda\) in the second stage alone.

    References: Dimitrov et al. 2024, SPEAR: Exact Gradient Inversion of Batches in Federated Learning.
    """
    size, units = len(spectrum), len(layer.weight)
    if size < 1 or size > MOST or size + SPARE > units:
        return None
    blur = 1e-4 + 20 * spectrum.tilt / units**0.5
    if blur > BLURRED:
        return None
    # Units that are silent for all examples say nothing about one; the others count alike, however small their slopes.
    size_of = spectrum.left.norm(dim=1)
    speaking = size_of > 1e-3 * size_of.max()
    rows = spectrum.left[speaking] / size_of[speaking, None]
    pool = _Pool(rows, blur)
    pool.add(_silent(rows, starts[:, speaking]))
    # A unit at which few examples are active tends to have small slopes, and is silent for most examples.
    rank = (len(rows) - size_of[speaking].argsort().argsort()).double()
    best = _best(pool, spectrum, layer)
    for number, drawn in enumerate(range(0, draws, CHUNK)):
        if _is_certain(best):
            break
        chance = rank ** TILTS[number % len(TILTS)]
        pool.add(_sparsen(rows, _null(rows, chance, min(CHUNK, draws - drawn), rng)))
        best = _best(pool, spectrum, layer)
    return best


class _Pool:
    """Directions with many zeros, without repetitions, those with most zeros first."""

    def __init__(self, left: Tensor, blur: float) -> None:
        self.left, self.blur = left, blur
        self.directions = left.new_zeros(0, left.shape[1])
        self.zeros = torch.zeros(0, dtype=torch.long, device=left.device)

    def count(self, directions: Tensor) -> Tensor:
        return ((directions @ self.left.T).abs() < self.blur).sum(1)

    def add(self, directions: Tensor) -> None:
        """Keep those with many zeros."""
        if not len(directions):
            return
        zeros = self.count(directions)
        # One example alone has no other whose units could be silent.
        kept = (zeros >= self.left.shape[1] + SPARE - 2) | (self.left.shape[1] == 1)
        directions, zeros = torch.cat([self.directions, directions[kept]]), torch.cat([self.zeros, zeros[kept]])
        order = zeros.argsort(descending=True, stable=True)
        directions, zeros = directions[order], zeros[order]
        chosen: list[int] = []
        alike = (directions @ directions.T).abs() > 1 - 1e-6
        free = torch.ones(len(directions), dtype=torch.bool, device=directions.device)
        for place in range(len(directions)):
            if free[place]:
                chosen.append(place)
                free &= ~alike[place]
        most = 64 * self.left.shape[1]
        self.directions, self.zeros = directions[chosen[:most]], zeros[chosen[:most]]


def _silent(left: Tensor, activations: Tensor) -> Tensor:
    """Return for each start the direction that is smallest where it is not active."""
    directions = []
    for z in activations:
        rows = left[z < 0]
        if len(rows) >= left.shape[1]:
            directions.append(torch.linalg.eigh(rows.T @ rows).eigenvectors[:, 0])
    return torch.stack(directions) if directions else left.new_zeros(0, left.shape[1])


def _null(left: Tensor, chance: Tensor, draws: int, rng: Stream) -> Tensor:
    """Return directions that are zero at b - 1 units drawn at random, (draws, b)."""
    size = left.shape[1]
    if size == 1:
        return left.new_ones(1, 1)
    chosen = torch.multinomial(chance.cpu().expand(draws, -1), size - 1, generator=rng)
    rows = left[chosen.to(left.device)]
    vectors: Tensor = torch.linalg.eigh(rows.mT @ rows).eigenvectors
    return vectors[:, :, 0]


def _sparsen(left: Tensor, directions: Tensor) -> Tensor:
    """Return nearby directions with more zeros, by least squares that weigh near zeros more and more."""
    for width in WIDTHS:
        weights = 1 / ((directions @ left.T).square() + width**2)
        directions = torch.linalg.eigh((weights[:, :, None] * left).mT @ left).eigenvectors[:, :, 0]
    return directions


def _best(pool: _Pool, spectrum: Spectrum, layer: LinearLayer) -> Disentangled | None:
    basis = _greedy(pool.directions, len(spectrum))
    if basis is None:
        return None
    split = _polish(_examples(pool.directions[basis], pool.blur, spectrum, layer), pool.blur, spectrum, layer)
    for _ in range(len(spectrum)):
        if _is_certain(split):
            break
        better = _exchange(basis, split, pool, spectrum, layer)
        if better is None:
            break
        basis, split = better[0], _polish(better[1], pool.blur, spectrum, layer)
    order = split.agreement.argsort(descending=True, stable=True)
    return Disentangled(split.seen[order], split.slopes[order], split.agreement[order])


def _polish(split: Disentangled, blur: float, spectrum: Spectrum, layer: LinearLayer) -> Disentangled:
    """Return the examples after fitting each direction to all units where it is inactive, if they agree as well."""
    chosen = _silent(spectrum.left, split.seen @ layer.weight.T)
    if len(chosen) < len(spectrum) or torch.linalg.svdvals(chosen)[-1] < INDEPENDENT:
        return split
    polished = _examples(chosen, blur, spectrum, layer)
    return polished if polished.agreement.sum() >= split.agreement.sum() else split


def _is_certain(split: Disentangled | None) -> bool:
    return split is not None and bool((split.agreement == 1).all())


def _greedy(directions: Tensor, size: int) -> list[int] | None:
    """Return the first directions that are independent of those before."""
    basis: list[int] = []
    spanned = directions.new_zeros(0, directions.shape[1])
    for place, direction in enumerate(directions):
        rest = direction - spanned.T @ (spanned @ direction)
        rest = rest - spanned.T @ (spanned @ rest)
        if rest.norm() > INDEPENDENT:
            basis.append(place)
            spanned = torch.cat([spanned, (rest / rest.norm())[None]])
            if len(basis) == size:
                return basis
    return None


def _examples(chosen: Tensor, blur: float, spectrum: Spectrum, layer: LinearLayer) -> Disentangled:
    """Return the examples that a basis implies, or each of several bases, (..., b, b)."""
    # M = U S R = (U Q) (Q^-1 S R) for the basis Q as columns.
    implied = torch.linalg.solve(chosen.mT, spectrum.values[:, None] * spectrum.right.T)
    weight = torch.where(implied[..., -1:] == 0, 1.0, implied[..., -1:])
    seen = implied / weight
    slopes = chosen @ spectrum.left.T
    silent = slopes.abs() < blur * spectrum.left.norm(dim=1).clamp(min=1e-6)
    z = seen @ layer.weight.T
    # A unit at the very edge of being active may count either way.
    close = z.abs() < EDGE * z.abs().amax(-1, keepdim=True)
    agreement = ((silent == (z <= 0)) | close).double().mean(-1)
    return Disentangled(seen, torch.where(silent, 0.0, slopes) * weight, agreement)


def _exchange(
    basis: list[int], split: Disentangled, pool: _Pool, spectrum: Spectrum, layer: LinearLayer
) -> tuple[list[int], Disentangled] | None:
    """Return the best basis with one direction exchanged, of those that agree worst; None if none is better."""
    others = [other for other in range(min(len(pool.directions), 16 * len(basis))) if other not in basis]
    best, total = None, split.agreement.sum().item() + 1e-9
    for place in split.agreement.argsort()[:4].tolist():
        if split.agreement[place] == 1 or not others:
            continue
        bases = torch.tensor([[*basis[:place], other, *basis[place + 1 :]] for other in others])
        chosen = pool.directions[bases]
        independent = torch.linalg.svdvals(chosen)[:, -1] > INDEPENDENT
        if not bool(independent.any()):
            continue
        results = _examples(chosen[independent], pool.blur, spectrum, layer)
        totals = results.agreement.sum(1)
        winner = int(totals.argmax())
        if totals[winner] > total:
            total = totals[winner].item() + 1e-9
            own = Disentangled(results.seen[winner], results.slopes[winner], results.agreement[winner])
            best = bases[independent][winner].tolist(), own
    return best
