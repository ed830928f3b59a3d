"""What every attack promises; `check_attack` is for whoever writes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from torch import Tensor

from leaktight.core.attack import (
    Attack,
    Ensemble,
    Guess,
    GuessedLabels,
    GuessedSamples,
    GuessedStatistics,
    PropertyScores,
    Reconstruction,
)
from leaktight.core.errors import Refusal
from leaktight.core.metric import Metric, Reading
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.run import Run, all_but
from leaktight.core.scenario import flatten
from leaktight.core.threat import Knows, ThreatModel, View
from leaktight.metrics import PSNR, LabelDistance, PropertyAuc, Recognised, RecognisedConfidence, StatisticsError
from leaktight.testing.conformance import own_randomness, picture, require, require_unchanged
from leaktight.testing.seats import ATTACKER, active_run
from leaktight.testing.toys import normed_task, null_run, property_run, toy_run
from leaktight.testing.values import check_value


def check_attack(attack: Attack, run: Run | None = None, metrics: Sequence[Metric] = (), seat: str = "") -> None:
    """Check every promise of an attack; the first that is broken is a `ConformanceError` that names it.

    It gets to know what it says that it needs and nothing more. It is run a few times: choose settings that are quick.

    Args:
        attack: the attack.
        run: an undefended run on which it must do better than chance; None for a toy with twelve messages of one
            example, or with forty of which half have a private property, or with batch norm in training mode, if that
            is what it claims. An active attack takes part in a small training run.
        metrics: what it is graded by; none for PSNR, label distance, property AUC, how many samples are recognised and
            how surely, and the error of batch statistics. An attack that claims scores brings its own.
        seat: where the attacker sits; empty for the server, and for an active attack in a small training run the second
            participant.

    Example:
        >>> from leaktight.attacks import Analytic
        >>> check_attack(Analytic())
    """
    nothing = active_run(attack, null=True) if run is None and attack.active else None
    trial = Attempt(
        attack=attack,
        threat=ThreatModel(seat=seat or (ATTACKER if nothing else "server"), knows=attack.needs),
        metrics=tuple(metrics)
        or (PSNR(), LabelDistance(), PropertyAuc(), Recognised(), RecognisedConfidence(), StatisticsError()),
    )
    run = run or _toy(attack)
    check_value(attack)
    check_needs(attack)
    check_beats_chance(trial, run, check_guess(trial, run))
    check_null(trial, nothing or null_run(run))


def _toy(attack: Attack) -> Run:
    if attack.active:
        return active_run(attack)
    if attack.claims == {"statistics"}:
        return toy_run(rounds=12, batch_size=2, task=normed_task())
    return property_run() if "property" in attack.claims else toy_run(rounds=12, batch_size=1)


def check_needs(attack: Attack) -> None:
    """It accepts a threat model that grants what it needs, and refuses one that withholds any part of it."""
    attack.check(attack.needs)
    for withheld in sorted(attack.needs):
        try:
            attack.check(frozenset(Knows) - {withheld})
        except Refusal:
            continue
        require(False, f"{attack} must refuse a threat model that withholds {withheld}.")


def check_guess(trial: Attempt, run: Run) -> Guess:
    """Two runs on one view with one stream give the same guess about its messages, and leave the view as it was.

    Returns:
        The guess; of an ensemble, its answer.
    """
    attack, view = trial.attack, trial.threat.view(run)
    with require_unchanged(str(attack), **_parts(view)), own_randomness(str(attack)):
        first, second = (attack(view, stream(0, "attack")) for _ in range(2))
    same = first.keys == second.keys and picture(_tensors(first)) == picture(_tensors(second))
    require(same, f"{attack} must guess the same from the same stream. Two runs differ.")
    known = {message.key for message in view.messages} | {exchange.sent.key for exchange in view.exchanges()}
    known |= {(all_but(view.seat), message.round) for message in view.messages}
    strange = [key for key in first.keys if key not in known]
    require(
        bool(first.keys) and not strange,
        f"{attack} must guess about the messages in view. Got {strange or 'no guess'} instead.",
    )
    if isinstance(first, Ensemble):
        first = first.answer
    speaks = {
        Reconstruction: {"inputs", "labels"},
        GuessedLabels: {"labels"},
        PropertyScores: {"property"},
        GuessedSamples: {"samples"},
        GuessedStatistics: {"statistics"},
    }
    claimed = speaks.get(type(first), {"scores"})
    require(bool(attack.claims & claimed), f"{attack} must say in `claims` what its {type(first).__name__} speaks of.")
    return first


def check_beats_chance(trial: Attempt, run: Run, guess: Guess) -> None:
    """Without a defence its guess is better than chance in everything it claims."""
    readings = trial.grade(guess, [run.truth(key) for key in guess.keys], stream(0, "grade"), run.auxiliary)
    require(
        bool(readings),
        f"{trial.attack} must be graded to be checked. No metric grades its claims {sorted(trial.attack.claims)}.",
    )
    # What compares parts of an attack with each other has no chance level, and leaks neither way.
    for reading in (reading for reading in readings if reading.chance is not None or reading.leaks is not None):
        require(reading.beats_chance(), f"{trial.attack} must beat chance on an undefended toy. {_describe(reading)}")


def check_null(trial: Attempt, run: Run) -> None:
    """On messages of pure noise it does no better than chance.

    Else it learned from something other than the messages.
    """
    for reading in trial.read(run, stream(0, "attack")).readings:
        require(
            not reading.beats_chance(),
            f"{trial.attack} must be at chance where there is nothing to find. {_describe(reading)}",
        )


def _describe(reading: Reading) -> str:
    interval = "" if reading.low is None or reading.high is None else f" [{reading.low:.3g}, {reading.high:.3g}]"
    return f"Its {reading.name} is {reading.value:.3g}{interval}, chance is {reading.chance}."


def _parts(view: View) -> dict[str, dict[str, Tensor]]:
    """Return every tensor of a view, by the part it belongs to."""
    parts = {f"message {place}": dict(message.tensors) for place, message in enumerate(view.messages)}
    parts["task"] = view.task.model.state_dict()
    parts["labels"] = {str(key): labels for key, labels in view.labels.items()}
    parts["hints"] = {
        f"{key} {part}": tensor for key, hints in view.hints.items() for part, tensor in vars(hints).items()
    }
    parts["memory"] = {name: value for name, value in flatten(view.memory).items() if isinstance(value, Tensor)}
    if view.auxiliary is not None:
        public = vars(view.auxiliary).items()
        parts["auxiliary data"] = {name: tensor for name, tensor in public if tensor is not None}
    return parts


def _tensors(guess: Guess) -> dict[str, Tensor]:
    """Return every tensor of a guess, by its place."""
    tensors: dict[str, Tensor] = {}
    for field in dataclasses.fields(guess):
        value = getattr(guess, field.name)
        if isinstance(value, Tensor):
            tensors[field.name] = value
        elif isinstance(value, tuple):
            tensors |= {f"{field.name} {place}": each for place, each in enumerate(value) if isinstance(each, Tensor)}
        inner = {"": value} if isinstance(value, Guess) else value if isinstance(value, Mapping) else {}
        for name, guess_part in inner.items():
            if isinstance(guess_part, Guess):
                tensors |= {f"{field.name} {name} {part}": tensor for part, tensor in _tensors(guess_part).items()}
    return tensors
