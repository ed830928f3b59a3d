"""The scheduler: a plan in, records out. It alone writes the store; a pool does the work."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

from leaktight.core import in_memory
from leaktight.core.defence import is_undefended
from leaktight.core.display import count
from leaktight.core.errors import InvalidValue
from leaktight.core.record import Cell, Record, Status
from leaktight.data import Factory
from leaktight.plans.plan import Plan, on_device
from leaktight.plans.validation import validate_plan
from leaktight.running.audit_task import AuditResult, AuditTask, refusal, without_record
from leaktight.running.audit_worker import audit_setup
from leaktight.running.fingerprint import Fingerprint, explain
from leaktight.running.forecast import Estimate, Forecast, Kinds, kinds_of
from leaktight.running.processes import start_pool
from leaktight.running.store import TRAINING_FOLDER, Store
from leaktight.running.time_budget import fit_budget
from leaktight.running.training_cache import TrainingCache, TrainingSpec
from leaktight.running.worker_pool import PoolResult, WorkerPool, Workers

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Step:
    """How far an audit is, for whoever shows progress.

    It is reported when a task begins and when it has ended, and now and then while a training run lasts.

    Args:
        done: how many tasks have ended; a training run that is under way counts in part.
        total: how many there are: training runs and cells that were not there before.
        kept: how many cells were there before.
        text: what has ended or is under way.
        status: what came of it; None while it is under way.
        seconds: how long it took, if it has ended.
        left: how long all that is left takes; None if nobody can tell.
    """

    done: float
    total: int
    kept: int
    text: str
    status: Status | None
    seconds: float | None = None
    left: Estimate | None = None


Progress = Callable[[Step], None]
OnBegin = Callable[[Plan], None]
OnUndefended = Callable[[Sequence[Record]], None]


def run(
    plan: Plan,
    out: str | Path,
    workers: Workers = 1,
    device: str | None = None,
    progress: Progress | None = None,
    budget: float | None = None,
    on_begin: OnBegin | None = None,
    on_undefended: OnUndefended | None = None,
) -> list[Record]:
    """Run an audit and return a record for every cell of its plan, in the plan's order.

    Cells that an earlier run finished in the same folder are not computed again, unless something that they were made
    from has changed (data, model, code or versions), which is said; failed ones are tried again. The records depend on
    the plan alone, not on the number of workers or on interruptions; only `seconds` differ.

    Args:
        plan: what to measure: from `read_plan`, `quick`, `standard`, or made by hand.
        out: the audit's folder; made if need be. What is in it can be read by its owner only.
        workers: how many processes do the work, at least 1; 1 means this process. Or who else does it: a `Cluster` of
            Ray.
        device: `cpu`, `cuda`, `mps`, or `auto` for the fastest there is; None leaves the plan as it is.
        progress: called when a task begins and when it ends, and now and then while a training run lasts.
        budget: how many seconds there are; None for no limit. The suite `strongest` then tries what fits, by costs that
            are measured once; long training runs have fewer rounds.
        on_begin: called with the plan when it was found sound and its folder can be used, before anything is attacked.
        on_undefended: called with the records of what was measured without a defence as soon as they are all there, if
            anything else is left: whether there is a leak at all is the first answer.

    Raises:
        LeaktightError: the plan cannot be run here, another audit uses the folder, or the disk is full; what is
            finished is kept.

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
    objects = "" if workers == 1 else in_memory.encode()
    folder = Path(out)
    with Store.create(folder) as store:
        if budget is not None:
            plan = fit_budget(plan, budget, workers if isinstance(workers, int) else 1, folder)
        store.begin(plan)
        if on_begin is not None:
            on_begin(plan)
        place = folder / TRAINING_FOLDER
        with start_pool(workers, audit_setup(place, objects)) as pool:
            forecast = Forecast(workers if isinstance(workers, int) else None)
            _Scheduler(store, pool, TrainingCache(place), forecast, progress, on_undefended).run(plan)
        return store.records()


class _Scheduler:
    """One run through a plan's tasks: training runs first, and each cell as soon as its training run is there."""

    def __init__(
        self,
        store: Store,
        pool: WorkerPool[AuditTask, AuditResult],
        training_cache: TrainingCache,
        forecast: Forecast,
        progress: Progress | None,
        on_undefended: OnUndefended | None,
    ) -> None:
        self._store, self._pool, self._training_cache, self._progress = store, pool, training_cache, progress
        self._forecast, self._on_undefended = forecast, on_undefended
        self._kinds: dict[str, Kinds] = {}
        self._undefended: set[str] = set()
        self._fingerprints: dict[str, Fingerprint] = {}
        self._waiting: dict[str, list[Cell]] = {}
        self._specs: dict[str, TrainingSpec] = {}
        self._parts: dict[str, float] = {}
        self._out = self._done = self._total = self._kept = 0

    def run(self, plan: Plan) -> None:
        planned = {cell.key: cell for cell in plan.cells()}
        self._fingerprints = {key: self._training_cache.fingerprint(cell) for key, cell in planned.items()}
        self._remove_damaged(planned)
        changes, cells = self._remove_outdated(planned)
        refusals = [result for cell in cells if (result := refusal(cell))]
        refused = {result.task.name for result in refusals}
        for cell in (cell for cell in cells if cell.key not in refused):
            spec = self._training_cache.spec(cell)
            self._specs[spec.key] = spec
            self._waiting.setdefault(spec.key, []).append(cell)
        ready = {key for key, spec in self._specs.items() if self._training_cache.has(spec)}
        self._say_what_changed(changes, len(planned), [spec for key, spec in self._specs.items() if key not in ready])
        self._total = len(cells) + len(self._specs) - len(ready)
        self._expect([*cells, *(spec for key, spec in self._specs.items() if key not in ready)])
        self._undefended = {cell.key for cell in cells if _is_first_question(cell)}
        if not self._undefended:
            self._answer_first()
        for result in refusals:
            self._write(result)
        # Whether there is a leak at all is the first answer: nothing under a defence begins before the messages without
        # one are under way.
        bare = {key for key, spec in self._specs.items() if is_undefended(spec.defence)}
        for wave in (bare, self._specs.keys() - bare):
            self._run_wave([key for key in self._specs if key in wave], ready)
        while self._out:
            self._receive()

    def _expect(self, works: Sequence[TrainingSpec | Cell]) -> None:
        """Tell the forecast what is to be done, and what was done before in this folder."""
        for work in works:
            self._kinds[work.key] = kinds_of(work)
            self._forecast.expect(self._kinds[work.key])
        if self._kept and works:
            for record in self._store.records():
                if record.status is Status.DONE:
                    self._forecast.learn(kinds_of(record.cell), record.seconds)

    def _answer_first(self) -> None:
        """Hand over what was measured without a defence, unless nothing else is left."""
        if self._on_undefended is not None and self._done < self._total:
            records = [record for record in self._store.records() if _is_first_question(record.cell)]
            if records:
                self._on_undefended(records)

    def _run_wave(self, keys: Sequence[str], ready: Set[str]) -> None:
        """Begin training runs and the cells of those that are there; return when the last training run has ended."""
        for key in keys:
            if key not in ready:
                self._submit(AuditTask(self._specs[key], self._training_cache.fingerprint(self._specs[key])))
        for key in keys:
            if key in ready:
                self._release(key)
        while self._out and any(key in self._waiting for key in keys):
            self._receive()

    def _remove_damaged(self, planned: Mapping[str, Cell]) -> None:
        """Forget records that are not what was written, and name them."""
        damaged = self._store.remove_damaged()
        if damaged:
            names = [str(AuditTask(planned[key])) if key in planned else "a cell of another plan" for key in damaged]
            if len(names) == 1:
                _log.warning("The record of %s is damaged and is computed again.", *names)
            else:
                _log.warning("%d records are damaged and are computed again: %s.", len(names), "; ".join(names))

    def _remove_outdated(self, planned: Mapping[str, Cell]) -> tuple[list[list[str]], list[Cell]]:
        """Forget records that were made from something else.

        Returns:
            For each of them what changed, and the cells that are to be computed.
        """
        settled = {key: digest for key, digest in self._store.settled_digests().items() if key in planned}
        outdated = {key: digest for key, digest in settled.items() if digest != self._fingerprints[key].digest}
        before = {digest: self._store.fingerprint(digest) for digest in set(outdated.values())}
        changes = [self._fingerprints[key].changes(before[digest]) for key, digest in outdated.items()]
        if outdated:
            self._store.forget(outdated)
        self._kept = len(settled) - len(outdated)
        return changes, [cell for key, cell in planned.items() if key not in settled or key in outdated]

    def _say_what_changed(self, cells: Sequence[Sequence[str]], planned: int, specs: Sequence[TrainingSpec]) -> None:
        """Say once why something is computed again.

        Say for how many cells or, if there were none yet, for how many training runs.
        """
        changes, share = list(cells), f"{len(cells)} of {count(planned, 'cell')}"
        if not cells:
            before = [(spec, self._training_cache.find_outdated(spec)) for spec in specs]
            changes = [
                self._training_cache.fingerprint(spec).changes(earlier)
                for spec, earlier in before
                if earlier is not None
            ]
            share = f"{len(changes)} of {count(len(specs), 'training run')}"
        if changes:
            # What changed for most is named first.
            names = Counter(name for group in changes for name in group).most_common()
            _log.warning(explain((name for name, _ in names), share, len(changes)))

    def _submit(self, task: AuditTask) -> None:
        self._out += 1
        self._pool.submit(task)

    def _release(self, key: str) -> None:
        """Submit the cells that waited for a training run."""
        for cell in self._waiting.pop(key):
            self._submit(AuditTask(cell, self._fingerprints[cell.key], self._specs[key]))

    def _receive(self) -> None:
        """Wait for a result, and do what follows from it."""
        result = _audit_result(self._pool.next(self._advance))
        self._out -= 1
        if result.record is not None:
            self._write(result)
            return
        self._count(result)
        if isinstance(result.task.work, TrainingSpec) and result.status is Status.DONE:
            self._training_cache.tidy(result.task.work)
            self._release(result.task.name)
            return
        for cell in self._waiting.pop(result.task.name):
            self._write(without_record(AuditTask(cell), result.status, result.reason))

    def _write(self, result: AuditResult) -> None:
        if result.record is not None:
            self._store.write(result.record, result.pictures, self._fingerprints[result.task.name])
        self._count(result)
        if result.task.name in self._undefended:
            self._undefended.remove(result.task.name)
            if not self._undefended:
                self._answer_first()

    def _count(self, result: AuditResult) -> None:
        self._done += 1
        self._parts.pop(result.task.name, None)
        done = result.status is Status.DONE
        self._forecast.end(result.task.name, self._kinds[result.task.name], result.seconds if done else 0.0)
        self._show(str(result.task), result.status, result.seconds)

    def _advance(self, task: AuditTask, done: int, total: int) -> None:
        if not total:
            self._forecast.start(task.name, self._kinds[task.name])
            self._show(str(task), None)
            return
        self._parts[task.name] = done / total
        self._forecast.advance(task.name, done / total)
        self._show(f"{task}, {done} of {total}", None)

    def _show(self, text: str, status: Status | None, seconds: float | None = None) -> None:
        if self._progress is not None:
            done, left = self._done + sum(self._parts.values()), self._forecast.estimate()
            self._progress(Step(done, self._total, self._kept, text, status, seconds, left))


def _is_first_question(cell: Cell) -> bool:
    """Return whether a cell asks what messages leak as they are."""
    return cell.purpose == "measure" and cell.defence == cell.scenario.baseline


def _audit_result(result: PoolResult[AuditTask, AuditResult]) -> AuditResult:
    """Return what came of a task; one whose workers died is failed."""
    return without_record(result.task, Status.FAILED, result.lost) if result.value is None else result.value
