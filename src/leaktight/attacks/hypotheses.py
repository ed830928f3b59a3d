"""Hypotheses: what each candidate assumes where no gradient leads, such as the outcome of a secret draw."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from leaktight.attacks.replay import Replay
from leaktight.attacks.victims import Sighting, Victims
from leaktight.core.random import Stream

MOST_HYPOTHESES = 16
"""How many combinations of outcomes a victim's candidates start from, at most."""


@dataclasses.dataclass(frozen=True)
class Hypotheses:
    """What each row assumes, beside its point.

    Args:
        choices: for each message the outcome of each example, (rows, examples, outcomes); None where there are none.
        heard: which of a victim's messages a row listens to at first, (rows, messages): one, where each has outcomes to
            be guessed.
        targets: the label probabilities, (rows, examples, classes); None if they are searched for.
    """

    choices: Sequence[Tensor | None]
    heard: Tensor
    targets: Tensor | None


def count_hypotheses(replays: Sequence[Replay]) -> int:
    """Return how many combinations of outcomes candidates start from, at most `MOST_HYPOTHESES`."""
    counts = [len(replay.channel.outcomes) ** replay.examples for replay in replays if replay.channel.outcomes]
    return min(MOST_HYPOTHESES, max(counts, default=1))


def guess_hypotheses(victims: Victims, rows: int, rng: Stream, *, revised: bool = False) -> Hypotheses:
    """Return what the rows of each victim take for the outcomes of its examples, and for the order of its labels.

    All combinations of outcomes if there are few, else draws. Where an update is unrolled step by step, labels that
    were read come in some order of the steps: the first row of a victim takes them as they are, the others in orders
    drawn at random.

    Args:
        victims: whose.
        rows: how many rows each has.
        rng: where the draws come from.
        revised: whether outcomes are chosen anew after a phase. Only then may a row begin with one message of several.
    """
    count = len(victims.sightings)
    if victims.replay.channel.lasting:
        # One secret behind all messages.
        choices = [_guess_outcomes(victims.sightings[0], len(victims), rows, rng)] * count
    else:
        choices = [_guess_outcomes(sighting, len(victims), rows, rng) for sighting in victims.sightings]
    heard = torch.ones(len(victims) * rows, count, device=victims.device)
    if revised and count > 1 and choices[0] is not None and not victims.replay.channel.lasting:
        # Rows with the same outcome in the first phase listen to different messages.
        outcomes = len(victims.replay.channel.outcomes) ** victims.replay.examples
        turn = torch.arange(rows, device=victims.device) // min(outcomes, rows) % count
        heard = nn.functional.one_hot(turn, count).float().repeat(len(victims), 1)
    if victims.targets is None:
        return Hypotheses(choices, heard, None)
    targets = victims.targets.repeat_interleave(rows, 0)
    if victims.replay.steps.count > 1 and victims.replay.update == "unrolled":
        order = torch.rand(targets.shape[:2], generator=rng).argsort(1).to(targets.device)
        order[::rows] = torch.arange(targets.shape[1], device=targets.device)
        targets = targets.gather(1, order[..., None].expand_as(targets))
    return Hypotheses(choices, heard, targets)


def _guess_outcomes(sighting: Sighting, victims: int, rows: int, rng: Stream) -> Tensor | None:
    outcomes, examples = sighting.replay.channel.outcomes, sighting.replay.examples
    if not outcomes:
        return None
    if len(outcomes) ** examples <= rows:
        every = torch.tensor(list(itertools.product(range(len(outcomes)), repeat=examples)))
        choices = every.repeat(-(-rows // len(every)), 1)[:rows].repeat(victims, 1)
    else:
        weights = torch.tensor([outcome.weight for outcome in outcomes])
        choices = torch.multinomial(weights, victims * rows * examples, replacement=True, generator=rng).view(
            -1, examples
        )
    return nn.functional.one_hot(choices, len(outcomes)).float().to(sighting.replay.task.device)
