"""What every metric promises; `check_metric` is for whoever writes one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import torch

from leaktight.core.attack import Guess, Reconstruction, Scores
from leaktight.core.errors import Refusal
from leaktight.core.metric import Metric, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.testing.conformance import own_randomness, require, require_unchanged
from leaktight.testing.toys import CLASSES, toy_batch, toy_run, toy_task
from leaktight.testing.values import check_value

IMAGE = (1, 8, 8)
SENDERS = 4


@dataclasses.dataclass(frozen=True)
class Trial:
    """Guesses whose grades are known.

    Args:
        truth: the other side of each message.
        perfect: everything right.
        blind: what an attacker who knows the public data alone answers: its mean image, its commonest labels.
        wrong: what an attack that found nothing may end with: random images, random labels.
        shuffled: `perfect` with the examples of each message in another order.
        other: a guess that claims nothing the metric grades.
        public: what anyone knows of such data.
    """

    truth: tuple[GroundTruth, ...]
    perfect: Guess
    blind: Guess
    wrong: Guess
    shuffled: Guess
    other: Guess
    public: Batch | None = None


def reconstruction_trial(messages: int = 48, examples: int = 3, shape: tuple[int, ...] = IMAGE) -> Trial:
    """Return a trial for metrics that grade guessed inputs or labels.

    Example:
        >>> trial = reconstruction_trial(messages=2)
        >>> len(trial.truth), trial.perfect.inputs[0].shape
        (2, torch.Size([3, 1, 8, 8]))
    """
    run = toy_run(rounds=messages, batch_size=examples, task=toy_task(shape=shape))
    public = toy_batch(64, seed=1, shape=shape)
    common = public.labels.bincount(minlength=CLASSES).argsort(descending=True)
    truth, rng = tuple(run.truths.values()), stream(0, "trial")
    batches = [ground_truth.raw for ground_truth in truth]
    keys = tuple((f"client-{number % SENDERS}", number // SENDERS) for number in range(messages))

    def guess(changed: list[Batch]) -> Reconstruction:
        inputs, labels = tuple(b.inputs.clone() for b in changed), tuple(b.labels.clone() for b in changed)
        return Reconstruction(
            keys, inputs, labels, certified=tuple(torch.ones(len(b), dtype=torch.bool) for b in changed)
        )

    def labels(batch: Batch) -> torch.Tensor:
        return torch.randint(0, CLASSES, batch.labels.shape, generator=rng)

    def noise(batch: Batch, rng: Stream) -> torch.Tensor:
        return torch.rand(batch.inputs.shape, generator=rng)

    return Trial(
        truth=truth,
        perfect=guess(batches),
        blind=guess(
            [Batch(public.inputs.mean(0).expand_as(b.inputs), common[torch.arange(len(b)) % CLASSES]) for b in batches]
        ),
        wrong=guess([Batch(noise(b, rng), labels(b)) for b in batches]),
        shuffled=guess([b.take(torch.arange(len(b)).roll(1)) for b in batches]),
        other=Scores(keys, tuple(torch.zeros(len(b)) for b in batches)),
        public=public,
    )


def check_metric(metric: Metric, trial: Trial | None = None) -> None:
    """Check every promise of a metric; the first that is broken is a `ConformanceError` that names it.

    Args:
        metric: the metric.
        trial: guesses whose grades are known; None for guessed images and labels.

    Example:
        >>> from leaktight.metrics import MSE
        >>> check_metric(MSE())
    """
    trial = trial or reconstruction_trial()
    check_value(metric)
    if metric.leaks is None:
        check_silence(metric, trial)
        check_neutrality(metric, trial)
        check_quantities(metric, trial)
        return
    check_form(metric, trial)
    check_direction(metric, trial)
    check_order(metric, trial)
    check_chance(metric, trial)
    check_silence(metric, trial)
    check_quantities(metric, trial)


def check_quantities(metric: Metric, trial: Trial) -> None:
    """It states every reading that it returns: its title, and the direction that the reading says leaks."""
    stated = metric.quantities()
    for name, quantity in stated.items():
        require(bool(quantity.title.strip()), f"{metric} must give its reading `{name}` a title.")
    for reading in metric.grade(trial.perfect, trial.truth, stream(0, "metric"), trial.public):
        is_stated = reading.name in stated
        require(is_stated, f"{metric} must state its reading `{reading.name}` in `quantities`. Got {sorted(stated)}.")
        leaks = stated[reading.name].leaks
        fault = f"Got {leaks} for a reading where {reading.leaks} leaks."
        require(leaks == reading.leaks, f"{metric} must state which direction of `{reading.name}` leaks. {fault}")


def check_form(metric: Metric, trial: Trial) -> None:
    """It reads against the raw examples, twice the same, with interval and chance level.

    It changes nothing that it is given.
    """
    with require_unchanged(str(metric), **_parts(trial)), own_randomness(str(metric)):
        first, second = (_grade(metric, trial, trial.wrong) for _ in range(2))
    require(first == second, f"{metric} must read the same from the same stream. Two readings differ.")
    for reading in first:
        stored = Reading.model_validate(json.loads(json.dumps(reading.to_dict())))
        require(stored == reading, f"A reading of {metric} must come back from its JSON. {reading!r} does not.")
        require(reading.leaks == metric.leaks, f"{metric} must say in its readings that a {metric.leaks} value leaks.")
        require(reading.chance is not None, f"{metric} must state a chance level.")
        low, high = reading.low, reading.high
        inside = (low is None or low <= reading.value) and (high is None or reading.value <= high)
        require(inside, f"{metric} must lie in its interval. {reading.value} is not in [{low}, {high}].")


def check_neutrality(metric: Metric, trial: Trial) -> None:
    """A metric that is not about leakage reads twice the same, and says of no value that it leaks.

    It changes nothing that it is given.
    """
    with require_unchanged(str(metric), **_parts(trial)), own_randomness(str(metric)):
        first, second = (
            tuple(metric.grade(trial.wrong, trial.truth, stream(0, "metric"), trial.public)) for _ in range(2)
        )
    require(first == second, f"{metric} must read the same from the same stream. Two readings differ.")
    leaking = [reading for reading in first if reading.leaks is not None]
    require(not leaking, f"{metric} must not say that a value leaks. Got {leaking!r}.")


def check_direction(metric: Metric, trial: Trial) -> None:
    """A perfect guess gets the best value and beats chance; no other guess gets a better one."""
    best = _grade(metric, trial, trial.perfect)
    for name in ("blind", "wrong"):
        for perfect, worse in zip(best, _grade(metric, trial, getattr(trial, name)), strict=True):
            leaks = perfect.value > worse.value if perfect.leaks == "high" else perfect.value < worse.value
            values = f"Got {perfect.value:.4g} and {worse.value:.4g}, where {perfect.leaks} leaks."
            require(leaks, f"{metric} must grade a perfect guess above a {name} one. {values}")
    for reading in best:
        require(reading.beats_chance(), f"{metric} must find that a perfect guess beats chance. Got {reading!r}.")


def check_order(metric: Metric, trial: Trial) -> None:
    """The order of the examples behind one message does not matter."""
    for one, other in zip(_grade(metric, trial, trial.perfect), _grade(metric, trial, trial.shuffled), strict=True):
        same = abs(one.value - other.value) <= 1e-9 * max(1.0, abs(one.value))
        require(
            same, f"{metric} must not depend on the order within a message. Got {one.value:.6g} and {other.value:.6g}."
        )


def check_chance(metric: Metric, trial: Trial, tolerance: float = 0.1) -> None:
    """The chance level is the best that a guess that saw nothing gets, within a share of the way to a perfect one."""
    best, blind, wrong = (_grade(metric, trial, guess) for guess in (trial.perfect, trial.blind, trial.wrong))
    for perfect, known, random in zip(best, blind, wrong, strict=True):
        chance = known.chance if known.chance is not None else float("nan")
        margin = tolerance * abs(perfect.value - chance)
        gains = {name: _gain(reading, chance) for name, reading in (("blind", known), ("random", random))}
        for name, gain in gains.items():
            excess = f"Got {abs(gain):.4g} beyond it."
            require(
                gain <= margin, f"{metric} must not grade {name} guesses above its chance level {chance:.4g}. {excess}"
            )
        reached = max(gains.values()) >= -margin
        require(
            reached, f"{metric} must have a chance level that some blind guess reaches. {chance:.4g} is out of reach."
        )


def _gain(reading: Reading, chance: float) -> float:
    """Return how far a reading is on the leaking side of a chance level."""
    return (reading.value - chance) * (1 if reading.leaks == "high" else -1)


def check_silence(metric: Metric, trial: Trial) -> None:
    """A guess that claims nothing it grades gets no reading."""
    try:
        readings = tuple(metric.grade(trial.other, trial.truth, stream(0, "metric"), trial.public))
    except Refusal:
        return
    require(
        not readings, f"{metric} must be silent about a {type(trial.other).__name__} or refuse it. Got {readings!r}."
    )


def _grade(metric: Metric, trial: Trial, guess: Guess) -> Sequence[Reading]:
    readings = tuple(metric.grade(guess, trial.truth, stream(0, "metric"), trial.public))
    raw = [reading for reading in readings if reading.against in ("raw", None)]
    require(
        bool(raw),
        f"{metric} must score against the raw examples. Got {len(readings)} readings, none of them against raw.",
    )
    return readings


def _parts(trial: Trial) -> dict[str, dict[str, torch.Tensor]]:
    guess = trial.wrong
    parts = {"truth": {f"raw {n}": ground_truth.raw.inputs for n, ground_truth in enumerate(trial.truth)}}
    parts["truth"] |= {f"labels {n}": ground_truth.raw.labels for n, ground_truth in enumerate(trial.truth)}
    if trial.public is not None:
        parts["public data"] = {"inputs": trial.public.inputs, "labels": trial.public.labels}
    if isinstance(guess, Reconstruction):
        parts["guess"] = {f"inputs {n}": each for n, each in enumerate(guess.inputs)}
        parts["guess"] |= {f"labels {n}": each for n, each in enumerate(guess.labels or ())}
    if isinstance(guess, Scores):
        parts["guess"] = {f"values {n}": each for n, each in enumerate(guess.values)}
    return parts
