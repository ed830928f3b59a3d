"""The driver: a plan in, records out. It alone writes the store; engines do the work."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from leaktight.core.defence import is_undefended
from leaktight.core.display import count
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import attack_of
from leaktight.core.record import Cell, Record, Status
from leaktight.data import Factory
from leaktight.plans.plan import Plan, on_device
from leaktight.plans.validation import validate_plan
from leaktight.running.audit_task import AuditTask, TaskOutcome, refused, without_record
from leaktight.running.backend import Backend, backend_of
from leaktight.running.fingerprint import Fingerprint, explain
from leaktight.running.store import TRAINING_FOLDER, Store
from leaktight.running.time_budget import fit_budget
from leaktight.running.training_cache import TrainingCache, TrainingSpec
from leaktight.running.worker_pool import Workers

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Step:
    """How far an audit is, for whoever shows progress: told when a job has ended, and now and then while a training lasts.

    Args:
        done: how many jobs have ended; a training that is under way counts in part.
        total: how many there are: trainings and cells that were not there before.
        kept: how many cells were there before.
        text: what has ended or goes on.
        status: what came of it; None while it goes on.
    """

    done: float
    total: int
    kept: int
    text: str
    status: Status | None


Progress = Callable[[Step], None]


def run(
    plan: Plan,
    out: str | Path,
    workers: Workers = 1,
    device: str | None = None,
    progress: Progress | None = None,
    engine: Backend | None = None,
    budget: float | None = None,
) -> list[Record]:
    """Run an audit and return a record for every cell of its plan, in the plan's order.

    Cells that an earlier run finished in the same folder are not computed again, unless something that they were made from has
    changed (data, model, code or versions), which is said; failed ones are tried again. The records depend on the plan alone, not on the number
    of workers or on interruptions; only `seconds` differ.

    Args:
        plan: what to measure: from `read_plan`, `quick`, `standard`, or made by hand.
        out: the audit's folder; made if need be. What is in it can be read by its owner only.
        workers: how many processes do the work, at least 1; 1 means this process. Or who else does it: a `Cluster` of Ray.
        device: `cpu`, `cuda`, `mps`, or `auto` for the fastest there is; None leaves the plan as it is.
        progress: called after each job, and now and then while a training lasts.
        engine: who does the jobs, in place of `workers`.
        budget: how many seconds there are; None for no limit. The suite `strongest` then tries what fits, by costs that are measured once.

    Raises:
        LeaktightError: the plan cannot be run here, another audit uses the folder, or the disk is full; what is finished is kept.

    Example:
        >>> import tempfile
        >>> from leaktight.plans import parse_plan
        >>> plan = parse_plan({
        ...     "scenario": {"data": "digits", "model": "mlp", "rounds": 1},
        ...     "attacks": ["analytic"],
        ...     "grid": {"victims": 2},
        ... })
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = run(plan, folder)
        >>> [(record.cell.purpose, record.status.value) for record in records]
        [('measure', 'done'), ('control', 'done'), ('null', 'done')]
    """
    if isinstance(workers, int) and workers < 1:
        raise InvalidValue(f"The number of workers must be at least 1. Got {workers} instead.")
    Factory.start_run()
    plan = on_device(plan, device)
    validate_plan(plan)
    folder = Path(out)
    with Store.create(folder) as store:
        if budget is not None:
            plan = fit_budget(plan, budget, workers if isinstance(workers, int) else 1, folder)
        store.begin(plan)
        trainings = folder / TRAINING_FOLDER
        with engine or backend_of(workers, trainings) as at_work:
            _Drive(store, at_work, TrainingCache(trainings), progress).run(plan)
        return store.records()


class _Drive:
    """One run through a plan's jobs: trainings first, and each cell as soon as its training is there."""

    def __init__(self, store: Store, engine: Backend, trainings: TrainingCache, progress: Progress | None) -> None:
        self._store, self._engine, self._trainings, self._progress = store, engine, trainings, progress
        self._fingerprints: dict[str, Fingerprint] = {}
        self._waiting: dict[str, list[Cell]] = {}
        self._parts: dict[str, float] = {}
        self._out = self._done = self._total = self._kept = 0

    def run(self, plan: Plan) -> None:
        planned = {cell.key: cell for cell in plan.cells()}
        self._fingerprints = {key: self._trainings.fingerprint(cell) for key, cell in planned.items()}
        self._remove_damaged(planned)
        changes, cells = self._remove_outdated(planned)
        early = [outcome for cell in cells if (outcome := refused(cell))]
        never = {outcome.job.key for outcome in early}
        courses: dict[str, TrainingSpec] = {}
        for cell in (cell for cell in cells if cell.key not in never):
            course = self._trainings.course(cell)
            courses[course.key] = course
            self._waiting.setdefault(course.key, []).append(cell)
        ready = {key for key, course in courses.items() if self._trainings.has(course)}
        self._say_what_changed(changes, len(planned), [course for key, course in courses.items() if key not in ready])
        self._total = len(cells) + len(courses) - len(ready)
        for outcome in early:
            self._write(outcome)
        # Whether there is a leak at all is the first answer: nothing under a defence begins before the messages without one are under way.
        bare = {key for key, course in courses.items() if is_undefended(course.defence)}
        for wave in (bare, courses.keys() - bare):
            begun = [(key, course) for key, course in courses.items() if key in wave]
            for key, course in begun:
                if key not in ready:
                    self._submit(AuditTask(course))
            for key, _ in begun:
                if key in ready:
                    self._release(key)
            while self._out and any(key in self._waiting for key, _ in begun):
                self._ended(self._engine.next(self._advanced))
        while self._out:
            self._ended(self._engine.next(self._advanced))

    def _remove_damaged(self, planned: Mapping[str, Cell]) -> None:
        """Forget records that are not what was written, and name them."""
        damaged = self._store.remove_damaged()
        if damaged:
            names = [described(AuditTask(planned[key])) if key in planned else "a cell of another plan" for key in damaged]
            if len(names) == 1:
                _log.warning("The record of %s is damaged and is computed again.", *names)
            else:
                _log.warning("%d records are damaged and are computed again: %s.", len(names), "; ".join(names))

    def _remove_outdated(self, planned: Mapping[str, Cell]) -> tuple[list[list[str]], list[Cell]]:
        """Forget records that were made from something else.

        Returns:
            For each of them what changed, and the cells that are to be computed.
        """
        settled = {key: made for key, made in self._store.settled().items() if key in planned}
        outdated = {key: made for key, made in settled.items() if made != self._fingerprints[key].digest}
        before = {made: self._store.fingerprint(made) for made in set(outdated.values())}
        changes = [self._fingerprints[key].changes(before[made]) for key, made in outdated.items()]
        if outdated:
            self._store.forget(outdated)
        self._kept = len(settled) - len(outdated)
        return changes, [cell for key, cell in planned.items() if key not in settled or key in outdated]

    def _say_what_changed(self, cells: Sequence[Sequence[str]], planned: int, courses: Sequence[TrainingSpec]) -> None:
        """Say once why something is computed again: for how many cells, or, if there were none yet, for how many training runs."""
        changes, share = list(cells), f"{len(cells)} of {count(planned, 'cell')}"
        if not cells:
            before = {course.key: self._trainings.outdated(course) for course in courses}
            changes = [self._trainings.fingerprint(c).changes(made) for c in courses if (made := before[c.key]) is not None]
            share = f"{len(changes)} of {count(len(courses), 'training run')}"
        if changes:
            # What changed for most is named first.
            names = Counter(name for one in changes for name in one).most_common()
            _log.warning(explain((name for name, _ in names), share, len(changes)))

    def _submit(self, job: AuditTask) -> None:
        self._out += 1
        self._engine.submit(job)

    def _release(self, course: str) -> None:
        for cell in self._waiting.pop(course):
            self._submit(AuditTask(cell))

    def _ended(self, outcome: TaskOutcome) -> None:
        self._out -= 1
        if outcome.record is not None:
            self._write(outcome)
            return
        self._tell(outcome)
        if outcome.status is Status.DONE:
            self._release(outcome.job.key)
            return
        for cell in self._waiting.pop(outcome.job.key):
            self._write(without_record(AuditTask(cell), outcome.status, outcome.reason))

    def _write(self, outcome: TaskOutcome) -> None:
        if outcome.record is not None:
            self._store.write(outcome.record, outcome.pictures, self._fingerprints[outcome.job.key])
        self._tell(outcome)

    def _tell(self, outcome: TaskOutcome) -> None:
        self._done += 1
        self._parts.pop(outcome.job.key, None)
        self._show(described(outcome.job), outcome.status)

    def _advanced(self, job: AuditTask, done: int, total: int) -> None:
        self._parts[job.key] = done / max(total, 1)
        self._show(f"{described(job)}, {done} of {total}", None)

    def _show(self, text: str, status: Status | None) -> None:
        if self._progress is not None:
            self._progress(Step(self._done + sum(self._parts.values()), self._total, self._kept, text, status))


def described(job: AuditTask) -> str:
    """Say in a few words what a job is."""
    task = job.task
    if isinstance(task, TrainingSpec):
        attack = None if task.entrant is None else attack_of(task.entrant)
        inside = "" if attack is None else f" and {attack.kind} inside{', on noise' if task.null else ''}"
        return f"training with {task.defence}{inside}"
    return f"{task.label} against {task.defence}, batch {task.batch_size}, {task.stage}"
