"""The account of DP-SGD: which steps one example took part in, as plain numbers that an engine can keep."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.core.budget import ATTACKED, DELTA, EPSILON, PARTICIPATIONS, REPEATS, SAMPLE_RATE
from leaktight.core.local import Memory
from leaktight.core.sampling import KnownBatch, Piece, Poisson, Sampling
from leaktight.defences import accountant


def count_step(memory: Memory, sampling: Sampling | None, multiplier: float, examples: int) -> None:
    """Add one step to what a party has spent.

    Poisson sampling adds the cost of the sampled Gaussian mechanism. Where batches are known, each example's own steps
    are counted, one that is m times in a batch as m^2 steps; of pieces of a pass, every example once in a pass; and
    where nothing is told, every example in every step.

    Args:
        memory: what the party keeps: `costs` (summed, of Poisson sampling), `rate`, `taken` and `attacked` (the steps
            of each example), `steps` (those of all of them) and `repeats`.
        sampling: how the batch was chosen; None if nobody told.
        multiplier: noise over clipping norm.
        examples: how many examples the party owns.
    """
    if isinstance(sampling, Poisson):
        cost = torch.tensor(accountant.step_cost(sampling.rate, multiplier), dtype=torch.float64)
        memory["costs"] = memory["costs"] + cost if "costs" in memory else cost
        memory["rate"] = max(sampling.rate, memory.get("rate", 0.0))
    elif isinstance(sampling, KnownBatch):
        times = torch.bincount(sampling.positions.cpu(), minlength=examples)
        where = ATTACKED if sampling.attacked else "taken"
        memory[where] = _sum(times.double() ** 2, memory.get(where))
        repeats = f"{where}_repeats"
        memory[repeats] = max(int(times.max()), memory.get(repeats, 0))
    elif not isinstance(sampling, Piece) or sampling.first:
        memory["steps"] = memory.get("steps", 0) + 1


def budget_notes(memory: Memory, name: str, multiplier: float, delta: float) -> dict[str, float]:
    """Return what a party has spent, as notes.

    What its training spent is apart from what messages spent that only an audit asked for.

    Args:
        memory: what `count_step` keeps.
        name: what the notes are called by.
        multiplier: noise over clipping norm.
        delta: the probability with which the guarantee may fail.
    """
    notes: dict[str, float] = {}
    own = _most(memory, "taken") + memory.get("steps", 0)
    if own or "costs" in memory:
        notes |= {f"{name}.{EPSILON}": _epsilon(memory.get("costs"), own, multiplier, delta), f"{name}.{DELTA}": delta}
        notes |= {f"{name}.{SAMPLE_RATE}": memory["rate"]} if "rate" in memory else {}
        notes |= _participation_notes(name, own, memory.get("taken_repeats", 0))
    attacked = _most(memory, ATTACKED)
    if attacked:
        name = f"{name}.{ATTACKED}"
        notes |= {f"{name}.{EPSILON}": _epsilon(None, attacked, multiplier, delta), f"{name}.{DELTA}": delta}
        notes |= _participation_notes(name, attacked, memory.get(f"{ATTACKED}_repeats", 0))
    return notes


def _epsilon(costs: Tensor | None, squares: float, multiplier: float, delta: float) -> float:
    """Return epsilon: exact where nothing was sampled; else by Rényi divergence, in which both kinds of step add up."""
    if costs is None:
        return accountant.gaussian_epsilon(squares, multiplier, delta)
    others = torch.tensor(accountant.participation_cost(squares, multiplier), dtype=torch.float64)
    return accountant.epsilon((costs.cpu() + others).tolist(), delta)


def _participation_notes(name: str, squares: float, repeats: int) -> dict[str, float]:
    notes = {f"{name}.{PARTICIPATIONS}": squares} if squares else {}
    return notes | ({f"{name}.{REPEATS}": float(repeats)} if repeats > 1 else {})


def _most(memory: Memory, where: str) -> float:
    counts: Tensor | None = memory.get(where)
    return 0.0 if counts is None else float(counts.max())


def _sum(new: Tensor, kept: Tensor | None) -> Tensor:
    """Add up counts of examples; a party may own more of them than before."""
    if kept is None:
        return new
    longest = max(len(new), len(kept))
    first, second = (torch.nn.functional.pad(each.cpu(), (0, longest - len(each))) for each in (new, kept))
    return first + second
