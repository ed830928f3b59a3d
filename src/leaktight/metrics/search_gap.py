"""Search gap: did a search fail, or does the message not determine the example?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import Guess, Reconstruction
from leaktight.core.metric import Direction, Metric, Quantity, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.comparison import Comparison
from leaktight.metrics.image import MSE, PSNR
from leaktight.metrics.pairing import blank, is_image
from leaktight.statistics.interval import bootstrap, wilson

OBJECTIVE_OF_GUESS, OBJECTIVE_OF_TRUTH, SEARCH_FAILED = "objective_of_guess", "objective_of_truth", "search_failed"

SHARE = 1e-3
"""How far above the truth's objective a search may stop, as a share of the way down from a blank answer's.

Objectives have many units: nats of a posterior, squared or cosine distances of gradients. The way from a blank answer
to the truth is in the same unit. A squared distance is then left with 3 % of the message's size, which is more than a
search leaves that recovers an image.
"""
ROUNDING = 1e-5
"""What single precision may make of two equal objectives, as a share of them: a sum of many thousand terms."""
OUTSIDE = 0.1
"""How far outside [0, 1] pixels may lie, as a root mean square: that error alone keeps an image at 20 dB or less."""


class SearchGap(Metric):
    r"""Whether searches failed, judged by the attack's own objective at the truth, which the attack never sees.

    Three readings, with a value for each message whose truth a candidate could be: the objective of the guess, that of
    the truth, and which searches failed. A guess that fits as well as the truth and is another example shows that the
    message does not determine the example. A guess that fits worse shows nothing about the message: a better search
    exists. A search of objective \(f\) that answers \(\hat x\) failed if

    - \(f(\hat x) - f(x) > \max(0.001 \, (f(b) - f(x)), \; 10^{-5} |f(x)|)\): the truth x fits better, measured by the
      blank answer b;
    - \(f(\hat x)\) is not finite: it diverged;
    - the pixels of an image lie outside [0, 1] by a root mean square of more than 0.1, before they are cut for a
      screen;
    - or all guesses of the cell together score below the blind level of PSNR (MSE of data that are not images) by more
      than their interval, against the raw examples and against the used ones: then all of its searches failed.

    It costs two evaluations of the objective for each message. There is no reading for an attack that does not search.
    A message whose truth no candidate can be is left out, unless all failed: the mean of several parties' messages, or
    a batch by Poisson sampling of another size than the message says.

    Example:
        >>> keys, images = (("client-0", 0), ("client-0", 1)), torch.full((2, 1, 1, 4, 4), 0.5)
        >>> SearchGap().grade(Reconstruction(keys, tuple(images)), (), stream(0))
        ()
    """

    kind: Literal["search_gap"] = "search_gap"
    claim: ClassVar[str] = "inputs"
    leaks: ClassVar[Direction | None] = None

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        return {
            OBJECTIVE_OF_GUESS: Quantity("objective of the guess"),
            OBJECTIVE_OF_TRUTH: Quantity("objective of the truth"),
            SEARCH_FAILED: Quantity("searches that failed", "%", digits=1),
        }

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return the objectives and the share of failed searches; nothing without a search or a known truth."""
        if not isinstance(guess, Reconstruction) or guess.objective is None or guess.judge is None or not truth:
            return ()
        reached, best, worst = (
            values.detach().cpu().double()
            for values in (
                guess.objective,
                guess.judge(truth),
                guess.judge([_blank_truth(ground_truth) for ground_truth in truth]),
            )
        )
        known = best.isfinite()
        fits_worse = reached - best > torch.maximum(SHARE * (worst - best).nan_to_num(0.0), ROUNDING * best.abs())
        failed = fits_worse | ~reached.isfinite() | torch.tensor([_is_outside(inputs) for inputs in guess.inputs])
        if _below_blind(guess, truth, rng, public):
            known, failed = torch.ones_like(known), torch.ones_like(failed)
        both = reached.isfinite() & best.isfinite()
        draws = stream(rng.initial_seed(), "interval", self.kind)
        return (
            *_mean(OBJECTIVE_OF_GUESS, reached[both], draws),
            *_mean(OBJECTIVE_OF_TRUTH, best[both], draws),
            *_share(SEARCH_FAILED, failed[known]),
        )


def _blank_truth(ground_truth: GroundTruth) -> GroundTruth:
    """Return the ground truth of a message as if its examples were blank."""
    raw, used = (
        dataclasses.replace(batch, inputs=blank(batch.inputs)) for batch in (ground_truth.raw, ground_truth.used)
    )
    return dataclasses.replace(ground_truth, raw=raw, used=used)


def _is_outside(inputs: Tensor) -> bool:
    """Return whether some image lies too far outside of what a screen can show."""
    if not is_image(inputs.shape[1:]) or not len(inputs):
        return False
    beyond = (inputs - inputs.clamp(0, 1)).detach().double().flatten(1).square().mean(1).sqrt()
    return bool((beyond > OUTSIDE).any())


def _below_blind(guess: Reconstruction, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None) -> bool:
    """Return whether guesses are worse than blind answers by more than their interval, raw and used."""
    metric: Comparison = PSNR() if is_image(truth[0].raw.inputs.shape[1:]) else MSE()
    worse: Direction = "low" if metric.leaks == "high" else "high"
    readings = metric.grade(guess, truth, rng, public)
    return bool(readings) and all(r.model_copy(update={"leaks": worse}).beats_chance() for r in readings)


def _mean(name: str, values: Tensor, draws: Stream) -> tuple[Reading, ...]:
    if not len(values):
        return ()
    low, high = bootstrap(values, draws)
    each = tuple(values.tolist())
    return (Reading(name=name, value=values.mean().item(), low=low, high=high, n=len(values), each=each),)


def _share(name: str, values: Tensor) -> tuple[Reading, ...]:
    if not len(values):
        return ()
    low, high = wilson(int(values.sum()), len(values))
    each = tuple(values.double().tolist())
    return (Reading(name=name, value=values.double().mean().item(), low=low, high=high, n=len(values), each=each),)
