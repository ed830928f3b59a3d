"""The kit must catch a metric that misjudges, and name the promise it breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from leaktight.core.attack import Guess, Reconstruction
from leaktight.core.errors import Refusal
from leaktight.core.metric import Metric, Quantity, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.testing.conformance import ConformanceError
from leaktight.testing.metrics import Trial, check_metric, reconstruction_trial

Hook = Callable[..., Any]


@pytest.fixture(scope="module")
def trial() -> Trial:
    return reconstruction_trial()


def errors(guess: Reconstruction, truth: Sequence[GroundTruth], *, paired: bool = True) -> list[float]:
    """Return each example's mean squared error to the best guess of its message; a plain stand-in for one-to-one pairing."""
    found = []
    for inputs, ground_truth in zip(guess.inputs, truth, strict=True):
        for place, true in enumerate(ground_truth.raw.inputs):
            each = (inputs - true).square().flatten(1).mean(1)
            found.append(float(each.min() if paired else each[place]))
    return found


def chance_of(truth: Sequence[GroundTruth]) -> float:
    return float(torch.cat([ground_truth.raw.inputs for ground_truth in truth]).sub(0.5).square().mean())


def reading(kind: str, value: float, chance: float | None, **more: Any) -> tuple[Reading, ...]:
    return (Reading(name=kind, value=value, low=value, high=value, chance=chance, leaks="low", against="raw", **more),)


def good(
    self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
) -> Sequence[Reading]:
    if not isinstance(guess, Reconstruction):
        return ()
    found = errors(guess, truth)
    return reading(self.kind, sum(found) / len(found), chance_of(truth))


def changed(**more: Any) -> Hook:
    def grade(
        self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> Sequence[Reading]:
        return tuple(one.model_copy(update=more) for one in good(self, guess, truth, rng))

    return grade


def in_order(
    self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
) -> Sequence[Reading]:
    found = errors(guess, truth, paired=False)
    return reading(self.kind, sum(found) / len(found), chance_of(truth))


def upside_down(
    self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
) -> Sequence[Reading]:
    return tuple(
        one.model_copy(update=dict.fromkeys(("low", "value", "high"), 1 - one.value))
        for one in good(self, guess, truth, rng)
    )


def easy_chance(
    self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
) -> Sequence[Reading]:
    return tuple(one.model_copy(update={"chance": 3 * (one.chance or 0)}) for one in good(self, guess, truth, rng))


def restless(
    self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
) -> Sequence[Reading]:
    shift = torch.Generator()
    shift.seed()
    noise = float(torch.rand((), generator=shift))
    return tuple(one.model_copy(update={"value": one.value + 1e-6 * noise}) for one in good(self, guess, truth, rng))


def clamps_in_place(
    self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
) -> Sequence[Reading]:
    if isinstance(guess, Reconstruction):
        for inputs in guess.inputs:
            inputs.round_()
    return good(self, guess, truth, rng)


def grades_everything(
    self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
) -> Sequence[Reading]:
    return good(self, guess, truth, rng) or reading(self.kind, 0.0, 0.5)


def mute(
    self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
) -> Sequence[Reading]:
    return ()


CHEATS: dict[str, tuple[Hook, str]] = {
    "in_order": (in_order, "must not depend on the order within a message"),
    "upside_down": (upside_down, "must grade a perfect guess above a blind one"),
    "easy_chance": (easy_chance, "must not grade blind guesses above its chance level"),
    "hard_chance": (
        changed(chance=0.001),
        "must have a chance level that some blind guess reaches. 0.001 is out of reach.",
    ),
    "no_chance": (changed(chance=None), "must state a chance level"),
    "constant": (
        changed(value=0.01, low=0.01, high=0.01),
        "must grade a perfect guess above a blind one. Got 0.01 and 0.01",
    ),
    "restless": (restless, "must read the same from the same stream"),
    "clamps_in_place": (clamps_in_place, "must leave its input unchanged. Its guess changed in place."),
    "wrong_way": (changed(leaks="high"), "must say in its readings that a low value leaks"),
    "outside": (changed(low=0.9, high=1.0), "must lie in its interval"),
    "no_interval": (changed(low=None, high=None), "must find that a perfect guess beats chance"),
    "used_only": (changed(against="used"), "must score against the raw examples. Got 1 readings"),
    "grades_everything": (grades_everything, "must be silent about a Scores or refuse it"),
    "mute": (mute, "must score against the raw examples. Got 0 readings"),
    "wide": (changed(low=-1.0, high=1.0), "must find that a perfect guess beats chance"),
    "unstated": (changed(name="other"), "must state its reading `other` in `quantities`. Got ['unstated']."),
}


def test_a_good_metric_passes(make: Hook, trial: Trial) -> None:
    check_metric(make(Metric, "good", grade=good, leaks="low", claim="inputs"), trial)


def test_a_metric_may_refuse_what_it_cannot_grade(make: Hook, trial: Trial) -> None:
    def grade(
        self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> Sequence[Reading]:
        if not isinstance(guess, Reconstruction):
            raise Refusal("Only reconstructions.")
        return good(self, guess, truth, rng)

    check_metric(make(Metric, "picky", grade=grade, leaks="low", claim="inputs"), trial)


@pytest.mark.parametrize("kind", CHEATS)
def test_a_broken_promise_is_named(kind: str, make: Hook, trial: Trial) -> None:
    grade, sentence = CHEATS[kind]
    with pytest.raises(ConformanceError) as found:
        check_metric(make(Metric, kind, grade=grade, leaks="low", claim="inputs"), trial)
    assert sentence in str(found.value)
    assert kind in str(found.value)


def test_a_reading_is_stated_as_it_is_returned(make: Hook, trial: Trial) -> None:
    sentences = {
        "must state which direction of `stated` leaks. Got high for a reading where low leaks.": Quantity(
            "error", leaks="high"
        ),
        "must give its reading `stated` a title": Quantity(" ", leaks="low"),
    }
    for number, (sentence, quantity) in enumerate(sentences.items()):
        stated = classmethod(lambda cls, quantity=quantity: {"stated": quantity})
        members = {"grade": changed(name="stated"), "leaks": "low", "claim": "inputs", "quantities": stated}
        with pytest.raises(ConformanceError) as found:
            check_metric(make(Metric, f"stated_{number}", **members), trial)
        assert sentence in str(found.value)


def test_random_guesses_may_not_look_like_a_leak(make: Hook, trial: Trial) -> None:
    def grade(
        self: Metric, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> Sequence[Reading]:
        if not isinstance(guess, Reconstruction):
            return ()
        blind = all(bool((inputs == inputs[0]).all()) for inputs in guess.inputs)
        value = 0.0 if min(errors(guess, truth)) == 0 and max(errors(guess, truth)) == 0 else 0.5
        return reading(self.kind, 1.0 if blind else value, 1.0)

    with pytest.raises(
        ConformanceError, match=r"must not grade random guesses above its chance level 1\. Got 0\.5 beyond it"
    ):
        check_metric(make(Metric, "flatters", grade=grade, leaks="low", claim="inputs"), trial)


def test_the_trial_is_what_it_says(trial: Trial) -> None:
    assert isinstance(trial.perfect, Reconstruction)
    assert isinstance(trial.shuffled, Reconstruction)
    assert max(errors(trial.perfect, trial.truth)) == 0
    assert max(errors(trial.shuffled, trial.truth)) == 0
    assert max(errors(trial.shuffled, trial.truth, paired=False)) > 0
    assert {tuple(inputs.shape) for inputs in trial.perfect.inputs} == {(3, 1, 8, 8)}
