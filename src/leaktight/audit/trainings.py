"""Trainings: the long part of an audit, done once for all cells that need it and kept on disk."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, SerializeAsAny, ValidationError
from torch import Tensor

from leaktight.audit.control import among_noise
from leaktight.audit.origin import Origins
from leaktight.audit.shelf import Folder, Shelf
from leaktight.core.archive import pack, unpack
from leaktight.core.defence import Defence
from leaktight.core.errors import LeaktightError
from leaktight.core.metric import Reading
from leaktight.core.private import reason
from leaktight.core.probe import Probe
from leaktight.core.random import stream
from leaktight.core.record import Cell
from leaktight.core.scenario import Enter, Progress, Scenario, Snapshot, Training, flat, nested
from leaktight.core.value import Value

TRAINING_FORMAT = 2
_log = logging.getLogger(__name__)


class Course(Value):
    """Everything that decides a training's outcome: its settings, and the fingerprint of what they name.

    Args:
        scenario: data, model and how they learn.
        defence: what the parties do about leakage.
        seed: what all randomness derives from.
        format: how the file is written.
        origin: the fingerprint of data, model, own code and versions.
        entrant: who takes a chair in it, with the attack and the threat model; None for a training among honest parties, which all
            passive probes share. It is left out of the key then.
        null: whether honest parties send noise, so that there is nothing to learn from them in any chair.
    """

    scenario: SerializeAsAny[Scenario]
    defence: SerializeAsAny[Defence]
    seed: int = 0
    format: int = TRAINING_FORMAT
    origin: str = ""
    entrant: SerializeAsAny[Probe] | None = Field(None, exclude_if=lambda entrant: entrant is None)
    null: bool = Field(False, exclude_if=lambda null: not null)

    @property
    def enter(self) -> Enter | None:
        """Who sits in each chair; None leaves all to the honest."""
        if self.entrant is None:
            return None
        return among_noise(self.entrant.enter, stream(self.seed, "training", "null")) if self.null else self.entrant.enter


class Trainings:
    """The trainings of an audit: read from their file if it is there, done and written if not.

    A file that cannot be read is reported and made anew. What is returned always comes from the file, so that a training
    that was just done and one that was kept are the same to the last bit.

    Args:
        shelf: where the files are: a folder, or another shelf; they hold private heads and keys, so only their owner can read them.
    """

    def __init__(self, shelf: Path | Shelf) -> None:
        self.shelf: Shelf = Folder(shelf) if isinstance(shelf, Path) else shelf
        self.origins = Origins()
        self._latest: tuple[str, Training] | None = None

    def course(self, cell: Cell) -> Course:
        """Return the training that a cell needs."""
        entrant = cell.probe.entrant
        null = entrant is not None and cell.purpose == "null"
        course = Course(scenario=cell.scenario, defence=cell.defence, seed=cell.seed, entrant=entrant, null=null)
        return course.model_copy(update={"origin": self.origin(course)})

    def origin(self, course: Course) -> str:
        """Return the fingerprint of what a training would be made from here and now."""
        return self.origins.of(course.scenario, course.seed, course.defence, *([course.entrant] if course.entrant else []))

    def name(self, course: Course) -> str:
        """Return the name of a training's file."""
        return f"{_settings(course)}-{course.origin}.safetensors"

    def has(self, course: Course) -> bool:
        """Return whether a file is there."""
        return self.name(course) in self.shelf.names()

    def tidy(self, course: Course) -> None:
        """Remove what the same settings gave when they were made from something else."""
        for name in self.shelf.names() - {self.name(course)}:
            if name.startswith(f"{_settings(course)}-"):
                self.shelf.drop(name)

    def get(self, course: Course, progress: Progress | None = None) -> Training:
        """Return a training, from memory, from its file or by doing it.

        Args:
            course: which one.
            progress: called while it is being done.
        """
        if self._latest is None or self._latest[0] != course.key:
            self._latest = course.key, self._kept(course) or self._done(course, progress)
        return self._latest[1]

    def _kept(self, course: Course) -> Training | None:
        path = f"{self.shelf}/{self.name(course)}"
        try:
            content = self.shelf.read(self.name(course))
            return None if content is None else decode(content)
        except LeaktightError as error:
            _log.warning("The kept training %s cannot be used and is done again: %s", path, error)
        except OSError as error:
            _log.warning("The kept training %s cannot be read and is done again: %s.", path, reason(error))
        return None

    def _done(self, course: Course, progress: Progress | None) -> Training:
        content = encode(course.scenario.train(course.defence, course.seed, progress, course.enter))
        self.shelf.write(self.name(course), content)
        self.tidy(course)
        return decode(content)


def _settings(course: Course) -> str:
    return course.model_copy(update={"origin": ""}).key


def encode(training: Training) -> bytes:
    """Return a training as an archive: tensors and numbers by stage and name, everything else beside them."""
    about = {
        "format": TRAINING_FORMAT,
        "stages": list(training.snapshots),
        "utility": [reading.to_dict() for reading in training.utility],
        "notes": dict(training.notes),
    }
    return pack(dict(_named(training)), about)


def decode(content: bytes) -> Training:
    """Undo `encode`; whatever is wrong with the bytes is one `LeaktightError`."""
    values, about = unpack(content)
    try:
        return Training(
            snapshots={stage: _snapshot(stage, values) for stage in about["stages"]},
            utility=tuple(Reading.model_validate(reading) for reading in about["utility"]),
            notes=about["notes"],
        )
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise LeaktightError("It is not a whole training file.") from error


def _named(training: Training) -> Iterator[tuple[str, Tensor | float]]:
    for stage, snapshot in training.snapshots.items():
        for name, tensor in snapshot.parameters.items():
            yield f"{stage}/parameters/{name}", tensor
        for party, memory in snapshot.memories.items():
            for name, value in flat(memory).items():
                yield f"{stage}/memories/{party}/{name}", value


def _snapshot(stage: str, values: Mapping[str, Any]) -> Snapshot:
    def below(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}

    return Snapshot(below(f"{stage}/parameters/"), nested(below(f"{stage}/memories/")))
