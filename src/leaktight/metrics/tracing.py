"""Tracing: whose example is this? The nearest reconstruction names a participant."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import Guess, Reconstruction
from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.comparison import AGAINST, Against, read, share_interval
from leaktight.metrics.pairing import on_screen

# Scores held in memory at once: 32 MB in double precision.
_SCORES = 4_000_000
# Terms of a product that are added up in single precision, and a product that is safe from overflow there.
_TERMS, _SINGLE = 256, 1e36


def trace(queries: Tensor, reconstructions: Tensor) -> Tensor:
    r"""Return for each query the position of the nearest reconstruction, the first of several that are equally near.

    .. math:: t_j = \arg\min_k \lVert d_j - d^{rec}_k \rVert^2
        = \arg\min_k \left( \lVert d^{rec}_k \rVert^2 - 2 \langle d_j, d^{rec}_k \rangle \right)

    The answer is that of the double loop over all pairs with each squared error in double precision. Matrix products in
    single precision leave for each query the reconstructions that rounding may have put out of order, by a bound that
    covers the worst case. Those few are compared in double precision, and what is left then, ties but for the last
    bits, pair by pair. The bound is each pair's own, so that a reconstruction that ran away blurs no other.

    Args:
        queries: examples of any shape, finite numbers.
        reconstructions: at least one example of the same shape.

    Example:
        >>> trace(torch.tensor([[0.9], [0.4], [0.5]]), torch.tensor([[0.0], [1.0], [0.0]]))
        tensor([1, 0, 0])

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        Algorithm 6.
    """
    _check(queries, reconstructions)
    flat, known = (examples.detach().cpu().flatten(1) for examples in (queries, reconstructions))
    firsts = _distinct(known)
    known = known[firsts]
    squares = torch.linalg.vector_norm(known, dim=1, dtype=torch.float64).square()
    chunk = max(1, _SCORES // len(known))
    nearest = [_nearest(part, known, squares) for part in torch.split(flat, chunk)] if len(flat) else []
    return firsts[torch.cat(nearest)] if nearest else torch.zeros(0, dtype=torch.long)


def _check(queries: Tensor, reconstructions: Tensor) -> None:
    if len(reconstructions) == 0:
        raise InvalidValue("The `reconstructions` of trace must be at least one. Got none instead.")
    if queries.shape[1:] != reconstructions.shape[1:] or queries.dim() < 2:
        raise InvalidValue(
            f"The `queries` of trace must be examples of the shape {tuple(reconstructions.shape[1:])} of the "
            f"reconstructions. Got {tuple(queries.shape[1:])} instead."
        )
    if not (torch.isfinite(queries).all() and torch.isfinite(reconstructions).all()):
        raise InvalidValue(
            "The `queries` and `reconstructions` of trace must be finite numbers. Got infinities or NaN instead."
        )


def _safe(largest: float) -> bool:
    """Return whether products in single precision stay finite and are not cut to fewer digits by a setting of torch."""
    return largest < _SINGLE and torch.get_float32_matmul_precision() == "highest"


def _distinct(examples: Tensor) -> Tensor:
    """Return the position of the first of each group of equal examples, in order: equal ones would tie for ever."""
    _, group = torch.unique(examples, dim=0, return_inverse=True)
    positions = torch.arange(len(examples))
    firsts = torch.full((int(group.max()) + 1,), len(examples)).scatter_reduce(0, group, positions, "amin")
    return firsts.sort().values


def _nearest(queries: Tensor, known: Tensor, squares: Tensor) -> Tensor:
    nearest = torch.zeros(len(queries), dtype=torch.long)
    rest = torch.arange(len(queries))
    near = torch.ones(len(queries), len(known), dtype=torch.bool)
    for precision in (torch.float32, torch.float64):
        near = _candidates(queries[rest], known, squares, precision)
        settled = near.sum(1) == 1
        nearest[rest[settled]] = near[settled].int().argmax(1)
        rest, near = rest[~settled], near[~settled]
    for place, candidates in zip(rest.tolist(), near, strict=True):
        positions = candidates.nonzero().flatten().tolist()
        errors = [_squared_error(queries[place], known[position]) for position in positions]
        nearest[place] = positions[errors.index(min(errors))]
    return nearest


def _squared_error(query: Tensor, reconstruction: Tensor) -> float:
    return (query.double() - reconstruction.double()).square().sum().item()


def _candidates(queries: Tensor, known: Tensor, squares: Tensor, precision: torch.dtype) -> Tensor:
    r"""Return which reconstructions may be nearest to each query, given how far rounding may have moved their scores.

    A product of n terms is off by at most about \(n u \lVert q \rVert \lVert r_k \rVert\), u the unit of rounding, so
    products are taken over few terms at a time and added up in double precision. The loop over pairs has rounding
    errors of its own; they count too. With both in the slack of a pair, k is out if
    \(score_k - slack_k > \min_j (score_j + slack_j)\).
    """
    sizes = torch.linalg.vector_norm(queries, dim=1, dtype=torch.float64)[:, None]
    norms = squares.sqrt()
    scores = squares.repeat(len(queries), 1)
    if precision is torch.float32 and not _safe(float(sizes.max() * norms.max())):
        return torch.ones_like(scores, dtype=torch.bool)
    for part, other in zip(torch.split(queries, _TERMS, 1), torch.split(known, _TERMS, 1), strict=True):
        scores.sub_(part.to(precision) @ other.to(precision).T, alpha=2)
    units = torch.finfo(precision)
    terms, features = _TERMS + 8, queries.shape[1] + 8
    slack = (sizes + norms).square_().mul_(2 * features * torch.finfo(torch.float64).eps)
    slack.addcmul_(sizes, norms, value=terms * units.eps).add_(2 * features * units.tiny)
    # What is not a number, because it overflowed, neither excludes others nor is excluded.
    highest = (scores + slack).nan_to_num_(math.inf, math.inf, math.inf).min(1, keepdim=True).values
    excluded: Tensor = scores.sub_(slack) > highest
    return ~excluded


@dataclasses.dataclass(frozen=True)
class _Query:
    """Examples to trace: whose each one is, and which of them stand or fall together."""

    inputs: Tensor
    owners: Tensor
    groups: Tensor


class TracingDistance(Metric):
    """Categorical distance between guessed and true owners of examples: 0 for a hit, 1 for a miss, averaged.

    The owner of an example is guessed as the sender of the message that its nearest reconstruction was made from. The
    paper's tracing attack is this decision on top of the reconstruction attack, so it grades the reconstructions that a
    record holds anyway; its membership attack is `label_distance`. Where all messages come from one sender, as in a
    secure sum, there is nothing to trace and no reading. Reconstructed images are cut to [0, 1] first, as those are
    that are scored by likeness.

    The chance level is that of always naming the participant who owns most of the queries. The interval is Wilson's
    with the messages as trials, or with the participants if all that they own is asked for.

    Args:
        queries: `attacked` asks for the examples behind the attacked messages, `owned` for everything that their
            senders own, as the paper does: then most examples were never sent and can be traced by likeness alone.
            Owned examples are scored as they are held (`raw`), and their single values are not kept.

    Differs from the paper: participants are the senders of the messages, not partitions made after the attack;
    reconstructions and queries of a larger batch are not matched one to one, because a query is answered on its own;
    whether the paper clips reconstructions is not said. The paper's pseudocode compares indices of images; its text,
    and this metric, those of participants.

    Example:
        >>> TracingDistance(queries="owned")
        TracingDistance(kind='tracing_distance', queries='owned')

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        sections 2 and 4.1 (tracing distance), appendix C, Algorithm 6.
    """

    kind: Literal["tracing_distance"] = "tracing_distance"
    title: ClassVar[str] = "examples not traced"
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 1
    claim: ClassVar[str] = "inputs"
    leaks: ClassVar[Direction] = "low"
    queries: Literal["attacked", "owned"] = "attacked"

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return a reading against the raw and one against the used examples; none without two participants."""
        if not isinstance(guess, Reconstruction):
            return ()
        names = list(dict.fromkeys(sender for sender, _ in guess.keys))
        senders = [names.index(sender) for sender, _ in guess.keys]
        if self.queries == "owned":
            queries: dict[Against, _Query | None] = {"raw": _owned_query(truth, senders)}
        else:
            queries = {against: _attacked_query(truth, senders, against) for against in AGAINST}
        return tuple(
            self._reading(guess, senders, query, against)
            for against, query in queries.items()
            if query is not None and len(query.owners.bincount().nonzero()) > 1
        )

    def _reading(self, guess: Reconstruction, senders: Sequence[int], query: _Query, against: Against) -> Reading:
        counts = torch.tensor([len(inputs) for inputs in guess.inputs])
        missed = torch.ones(len(query.owners), dtype=torch.float64)
        if counts.sum():
            said = torch.tensor(senders).repeat_interleave(counts)
            missed = (said[trace(query.inputs, on_screen(torch.cat(guess.inputs)))] != query.owners).double()
        chance = 1 - query.owners.bincount().max().item() / len(query.owners)
        reading = read(self, missed, share_interval(missed, query.groups), chance, against)
        return reading.model_copy(update={"each": ()}) if self.queries == "owned" else reading


def _attacked_query(truth: Sequence[GroundTruth], senders: Sequence[int], against: Against) -> _Query:
    batches = [ground_truth.raw if against == "raw" else ground_truth.used for ground_truth in truth]
    counts = torch.tensor([len(batch) for batch in batches])
    inputs = torch.cat([batch.inputs for batch in batches])
    return _Query(inputs, torch.tensor(senders).repeat_interleave(counts), torch.repeat_interleave(counts))


def _owned_query(truth: Sequence[GroundTruth], senders: Sequence[int]) -> _Query | None:
    """Return everything that each sender owns, once; None if nobody wrote down what one of them owns."""
    owned = {sender: ground_truth.owned for sender, ground_truth in zip(senders, truth, strict=True)}
    batches = [batch for batch in owned.values() if batch is not None]
    if not batches or len(batches) < len(owned):
        return None
    owners = torch.tensor(list(owned)).repeat_interleave(torch.tensor([len(batch) for batch in batches]))
    return _Query(torch.cat([batch.inputs for batch in batches]), owners, owners)
