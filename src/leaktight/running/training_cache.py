"""The cache of training runs: the long part of an audit, done once for all cells that need it and kept on disk."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, SerializeAsAny, ValidationError
from torch import Tensor

from leaktight.core.archive import pack, unpack
from leaktight.core.defence import Defence
from leaktight.core.digest import digest_archive
from leaktight.core.errors import LeaktightError
from leaktight.core.metric import Reading
from leaktight.core.private import reason
from leaktight.core.probe import Probe
from leaktight.core.random import stream
from leaktight.core.record import Cell
from leaktight.core.scenario import Enter, Progress, Scenario, Snapshot, Training, flatten, unflatten
from leaktight.core.value import Value
from leaktight.plans.control import among_noise
from leaktight.running.file_cache import FileCache, Folder
from leaktight.running.fingerprint import Fingerprint, Fingerprints

TRAINING_FORMAT = 3
_MEASURED_BY = (
    "leaktight.plans.control",
    *(f"leaktight.running.{name}" for name in ("gallery", "measure", "training_cache")),
)
"""What of an audit has a part in a record; everything else of it only plans, carries and reports."""
_TRAINED_BY = ("leaktight.running.training_cache",)
_SEATED_BY = ("leaktight.plans.control", *_TRAINED_BY)
_log = logging.getLogger(__name__)


class TrainingSpec(Value):
    """Everything that decides what a training run gives: its settings, and the fingerprint of what they name.

    Args:
        scenario: data, model and how they learn.
        defence: what the parties do about leakage.
        seed: what all randomness derives from.
        format: how the file is written.
        fingerprint: the digest of what it is made from.
        entrant: who takes a seat in it, with the attack and the threat model; None for a training run among honest
            parties, which all passive probes share. It is left out of the key then.
        null: whether honest parties send noise, so that there is nothing to learn from them in any seat.
    """

    scenario: SerializeAsAny[Scenario]
    defence: SerializeAsAny[Defence]
    seed: int = 0
    format: int = TRAINING_FORMAT
    fingerprint: str = ""
    entrant: SerializeAsAny[Probe] | None = Field(None, exclude_if=lambda entrant: entrant is None)
    null: bool = Field(False, exclude_if=lambda null: not null)

    @property
    def enter(self) -> Enter | None:
        """Who sits in each seat; None leaves all to the honest."""
        if self.entrant is None:
            return None
        return (
            among_noise(self.entrant.enter, stream(self.seed, "training", "null")) if self.null else self.entrant.enter
        )

    @property
    def settings_key(self) -> str:
        """The key of the settings alone, whatever they were made from."""
        return self.model_copy(update={"fingerprint": ""}).key

    @property
    def file_name(self) -> str:
        """The name of the file that keeps what it gives."""
        return f"{self.settings_key}-{self.fingerprint}.safetensors"


class TrainingCache:
    """The training runs of an audit: read from their file if it is there, done and written if not.

    A file that is damaged or cannot be read is named and made anew. What is returned always comes from the file, so
    that a training run that was just done and one that was kept are the same to the last bit.

    Args:
        files: where the files are: a folder, or a worker's memory; they hold private heads and keys, so only their
            owner can read them.
    """

    def __init__(self, files: Path | FileCache) -> None:
        self.files: FileCache = Folder(files) if isinstance(files, Path) else files
        self._fingerprints = Fingerprints()
        self._latest: tuple[str, Training] | None = None

    def spec(self, cell: Cell) -> TrainingSpec:
        """Return the training run that a cell needs."""
        entrant = cell.probe.entrant
        null = entrant is not None and cell.purpose == "null"
        spec = TrainingSpec(scenario=cell.scenario, defence=cell.defence, seed=cell.seed, entrant=entrant, null=null)
        return spec.model_copy(update={"fingerprint": self.fingerprint(spec).digest})

    def fingerprint(self, task: TrainingSpec | Cell) -> Fingerprint:
        """Return what a training run or a cell would be made from here and now."""
        if isinstance(task, Cell):
            return self._fingerprints.of(task.scenario, task.seed, task.defence, task.probe, alone=_MEASURED_BY)
        if task.entrant is None:
            return self._fingerprints.of(task.scenario, task.seed, task.defence, alone=_TRAINED_BY)
        return self._fingerprints.of(task.scenario, task.seed, task.defence, task.entrant, alone=_SEATED_BY)

    def has(self, spec: TrainingSpec) -> bool:
        """Return whether a file is there and whole; a damaged one is named, and removed."""
        name = spec.file_name
        if name not in self.files.names():
            return False
        if self._read(spec) is not None:
            return True
        self.files.drop(name)
        return False

    def find_outdated(self, spec: TrainingSpec) -> Fingerprint | None:
        """Return what a kept training run with the same settings was made from, if that is something else."""
        for name in sorted(self._others(spec)):
            try:
                parts = unpack(self.files.read(name) or b"")[1].get("fingerprint", {})
                return Fingerprint({str(part): str(text) for part, text in dict(parts).items()})
            except (LeaktightError, OSError, ValueError, TypeError):
                # Nobody can tell any more what it was made from.
                return Fingerprint()
        return None

    def tidy(self, spec: TrainingSpec) -> None:
        """Remove what the same settings gave when they were made from something else."""
        for name in self._others(spec):
            self.files.drop(name)

    def get(self, spec: TrainingSpec, progress: Progress | None = None) -> Training:
        """Return a training run, from memory, from its file or by doing it.

        Args:
            spec: which one.
            progress: called while it is being done.
        """
        if self._latest is None or self._latest[0] != spec.key:
            self._latest = spec.key, self._read(spec) or self._train(spec, progress)
        return self._latest[1]

    def _others(self, spec: TrainingSpec) -> set[str]:
        prefix = f"{spec.settings_key}-"
        return {name for name in self.files.names() - {spec.file_name} if name.startswith(prefix)}

    def _read(self, spec: TrainingSpec) -> Training | None:
        path = f"{self.files}/{spec.file_name}"
        try:
            content = self.files.read(spec.file_name)
            return None if content is None else decode(content)
        except LeaktightError:
            _log.warning("The training run `%s` is damaged and is computed again.", path)
        except OSError as error:
            _log.warning("The training run `%s` cannot be read (%s) and is computed again.", path, reason(error))
        return None

    def _train(self, spec: TrainingSpec, progress: Progress | None) -> Training:
        training = spec.scenario.train(spec.defence, spec.seed, progress, spec.enter)
        content = encode(training, self.fingerprint(spec))
        self.files.write(spec.file_name, content)
        self.tidy(spec)
        return decode(content)


def encode(training: Training, fingerprint: Fingerprint | None = None) -> bytes:
    """Return a training run as an archive.

    It holds tensors and numbers by stage and name, everything else beside them, and a checksum of all.

    Args:
        training: what is to be kept.
        fingerprint: what it was made from.
    """
    values = dict(_name_tensors(training))
    about = {
        "format": TRAINING_FORMAT,
        "fingerprint": dict(fingerprint.parts) if fingerprint else {},
        "stages": list(training.snapshots),
        "utility": [reading.to_dict() for reading in training.utility],
        "notes": dict(training.notes),
    }
    return pack(values, {**about, "checksum": digest_archive(values, about)})


def decode(content: bytes) -> Training:
    """Undo `encode`; whatever is wrong with the bytes is one `LeaktightError`."""
    values, about = unpack(content)
    try:
        if about.pop("checksum") != digest_archive(values, about):
            raise LeaktightError("It is not what was written.")
        return Training(
            snapshots={stage: _snapshot(stage, values) for stage in about["stages"]},
            utility=tuple(Reading.model_validate(reading) for reading in about["utility"]),
            notes=about["notes"],
        )
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise LeaktightError("It is not a whole training file.") from error


def _name_tensors(training: Training) -> Iterator[tuple[str, Tensor | float]]:
    for stage, snapshot in training.snapshots.items():
        for name, tensor in snapshot.parameters.items():
            yield f"{stage}/parameters/{name}", tensor
        for party, memory in snapshot.memories.items():
            for name, value in flatten(memory).items():
                yield f"{stage}/memories/{party}/{name}", value


def _snapshot(stage: str, values: Mapping[str, Any]) -> Snapshot:
    def below(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}

    return Snapshot(below(f"{stage}/parameters/"), unflatten(below(f"{stage}/memories/")))
