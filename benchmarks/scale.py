"""What an audit of a thousand clients or a split of a billion rows costs on N machines.

The benchmark measures unit costs and computes the totals from them.

Unit costs: a participant's round, a victim's attack, what the scheduler does for each cell, what starting a worker
takes; for split learning what each party does for a row, and how many bytes of it cross the wire. The costs of an audit
on N workers come from a simulation in virtual time that assigns tasks as the scheduler does: training runs first, each
cell as soon as its training run is done, one task per worker, the scheduler alone writing. It is checked against a real
audit: the same plan is run with one and with two local processes, and the second time is predicted
from the one-worker run's own tasks. With `--page docs/scale.md` the tables of that page are written.
"""

# ruff: noqa: E402
from __future__ import annotations

import dataclasses
import heapq
import platform
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from leaktight.core.threads import cores, rest_soon

rest_soon()  # torch reads it when it is imported

import torch
from _rows import Row, parser, show
from _training import two_parties

from leaktight import plans, running
from leaktight.core.record import Cell, Record
from leaktight.running.audit_task import AuditTask
from leaktight.running.audit_worker import audit_setup
from leaktight.running.processes import start_pool
from leaktight.running.store import Store
from leaktight.running.training_cache import TrainingCache

DEFENCES, ROUNDS, ITERATIONS, SEEDS = 4, 100, 300, 3
MACHINES = (1, 4, 16, 64, 256)
CORES = 8
PARTICIPANTS = 4
GIGABIT = 1e9 / 8


@dataclasses.dataclass(frozen=True)
class Units:
    """Unit costs, in seconds unless said otherwise.

    Args:
        round: one participant's answer in one round of a training run.
        attack: one victim and iteration of gradient matching.
        scheduler: what the scheduler does for one cell: its key, its task, its record in the store.
        start: from starting a worker until it takes its first task.
        feature: what the feature party does for one row.
        label: what the label party does for one row.
        wire: bytes of one row that cross the wire, both ways.
        memory: bytes of one row that both parties hold, with the order of rows.
    """

    round: float
    attack: float
    scheduler: float
    start: float
    feature: float
    label: float
    wire: float
    memory: float


@dataclasses.dataclass(frozen=True)
class Shape:
    """An audit as the simulation sees it: training runs, and so many equal cells that wait for each."""

    runs: int
    training: float
    cells: int
    cell: float


def simulate(shape: Shape, workers: int, scheduler: float, start: float) -> float:
    """Return how long an audit takes on some workers: tasks are assigned in virtual time, as the scheduler does it.

    Args:
        shape: its tasks.
        workers: how many work at the same time.
        scheduler: seconds of the scheduler, which is one process, for each cell.
        start: seconds until a worker takes its first task.

    Example:
        >>> simulate(Shape(2, 10.0, 4, 1.0), workers=2, scheduler=0.0, start=0.0)
        14.0
    """
    free = [start] * workers
    heapq.heapify(free)
    ready: list[tuple[float, float, int]] = [(0.0, shape.training, shape.cells) for _ in range(shape.runs)]
    heapq.heapify(ready)
    written = 0.0
    while ready:
        at, seconds, follow = heapq.heappop(ready)
        end = max(heapq.heappop(free), at) + seconds
        heapq.heappush(free, end)
        for _ in range(follow):
            heapq.heappush(ready, (end, shape.cell, 0))
        if not follow:
            # Records wait until the scheduler has written those before them.
            written = max(written, end) + scheduler
    return written


def plan_of(cells: int, iterations: int, rounds: int, victims: int) -> plans.Plan:
    """Return a plan whose training runs and cells are all equally long."""
    return plans.parse_plan(
        {
            "scenario": {"data": "photos", "model": "dlnet", "rounds": rounds, "participants": PARTICIPANTS},
            "defences": [{"kind": "gaussian_noise", "std": [1e-6 * number for number in range(1, cells)]}],
            "attacks": [{"kind": "gradient_matching", "iterations": iterations, "descent": {"kind": "adam"}}],
            "grid": {"victims": victims},
        }
    )


def _first_measurement(plan: plans.Plan) -> Cell:
    return next(cell for cell in plan.cells() if cell.purpose == "measure")


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run_audit(plan: plans.Plan, workers: int) -> tuple[float, list[Record]]:
    """Run an audit in a new folder; return how long it took, and its records."""
    found: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        spent = seconds(lambda: found.extend(running.run(plan, Path(folder) / "audit", workers=workers)))
    return spent, found


def audit_units(iterations: int, rounds: int, victims: int) -> tuple[float, float, float, float]:
    """Measure a participant's round, a victim's iteration, the scheduler's part of a cell, and a worker's start."""
    plan = plan_of(2, iterations, rounds, victims)
    cell = _first_measurement(plan)
    with tempfile.TemporaryDirectory() as folder:
        cache = TrainingCache(Path(folder))
        specs = [cache.spec(_first_measurement(plan_of(2, iterations, times * rounds, victims))) for times in (0, 1, 9)]
        # The first one warms up; of the others, what both take is the data, the model and its test.
        _, short, long = (seconds(partial(cache.get, spec)) for spec in specs)
        round_cost = max(0.0, long - short) / (8 * max(1, rounds) * PARTICIPANTS)
        with start_pool(1, audit_setup(Path(folder))) as here:
            attacked = []
            for _ in range(2):
                here.submit(AuditTask(cell))
                result = here.next(lambda *_: None).value
                attacked.append(result and result.record)
        first = attacked[-1]
        attack = (first.seconds if first else 0.0) / (victims * iterations)
        with start_pool(2, audit_setup(Path(folder))) as pool:
            pool.submit(AuditTask(cell))
            start = seconds(lambda: pool.next(lambda *_: None)) - (first.seconds if first else 0.0)
        with Store.create(Path(folder) / "store") as store:
            store.begin(plan)
            many = [first.model_copy(update={"seconds": float(number)}) for number in range(50)] if first else []

            def record() -> None:
                for one in many:
                    cache.spec(one.cell)
                    store.write(one)

            scheduler = seconds(record) / max(1, len(many))
    return round_cost, attack, scheduler, max(0.0, start)


def split_units(batch: int, steps: int) -> tuple[float, float, float, float]:
    """Measure what each party does for a row, what crosses the wire for it, and what both hold of it."""
    both = two_parties(batch)
    feature, label = both.feature, both.label
    message = feature.respond(label.opening())
    spent: dict[str, list[float]] = {"feature": [], "label": []}
    crossed = 0.0
    for _ in range(steps + 1):
        start = time.perf_counter()
        gradient = label.respond(message)
        middle = time.perf_counter()
        message = feature.respond(gradient)
        spent["label"].append(middle - start)
        spent["feature"].append(time.perf_counter() - middle)
        crossed = sum(t.numel() * t.element_size() for one in (message, gradient) for t in one.tensors.values()) / batch
    memory = sum(t.numel() * t.element_size() for t in (both.rows, both.numbers, both.labels)) / len(both.rows)
    orders = 2 * torch.empty(0, dtype=torch.long).element_size()
    by_row = {name: statistics.median(times[1:] or times) / batch for name, times in spent.items()}
    return by_row["feature"], by_row["label"], crossed, memory + orders


def check_simulation(cells: int, iterations: int, rounds: int, victims: int) -> list[Row]:
    """Run the same plan with one and two workers, and predict the second from the one-worker run's own tasks."""
    plan = plan_of(cells, iterations, rounds, victims)
    one, records = run_audit(plan, 1)
    two, _ = run_audit(plan, 2)
    spent = [record.seconds for record in records]
    runs = len({(record.cell.scenario.key, record.cell.defence.key) for record in records})
    training = max(0.0, one - sum(spent)) / runs
    shape = Shape(runs, training, round(len(spent) / runs), statistics.fmean(spent))
    start = audit_units(iterations, rounds, victims)[3]
    predicted = simulate(shape, 2, 0.0, start)
    return [
        Row(f"one worker, {len(records)} cells", one, "s"),
        Row("two workers, measured", two, "s"),
        Row("two workers, simulated from the tasks of one", predicted, "s"),
        Row("simulated against measured", predicted / two, "x"),
    ]


def audit_table(units: Units, clients: Sequence[int] = (100, 1000), machines: Sequence[int] = MACHINES) -> list[str]:
    """Return the table of audits: every client is attacked once for each defence, stage and seed."""
    lines = [
        "| clients | machines | workers | training runs | cells | hours | speed-up |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for count in clients:
        victims = min(count, 32)
        per_training = 3 * -(-count // victims)
        shape = Shape(DEFENCES * SEEDS, count * ROUNDS * units.round, per_training, victims * ITERATIONS * units.attack)
        alone = simulate(shape, CORES, units.scheduler, units.start)
        for number in machines:
            hours = simulate(shape, CORES * number, units.scheduler, units.start)
            cells = shape.runs * per_training
            lines.append(
                f"| {count:,} | {number} | {CORES * number:,} | {shape.runs} | {cells:,} | {hours / 3600:.2f} | "
                f"{alone / hours:.1f}x |"
            )
    return lines


def split_table(units: Units, rows: Sequence[float] = (1e6, 1e8, 1e9), lines: Sequence[float] = (1, 10)) -> list[str]:
    """Return the table of splits: one pass over all rows; the parties take turns, and so does the wire."""
    found = [
        "| rows | wire, Gbit/s | hours of a pass | of it computing | of it on the wire | traffic, GB | memory of both "
        "parties, GB |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for count in rows:
        for speed in lines:
            computing = count * (units.feature + units.label) / 3600
            wire = count * units.wire / (speed * GIGABIT) / 3600
            found.append(
                f"| {count:.0e} | {speed:g} | {computing + wire:.2f} | {computing:.2f} | {wire:.2f} "
                f"| {count * units.wire / 1e9:,.0f} | {count * units.memory / 1e9:,.1f} |"
            )
    return found


def unit_table(units: Units, checks: Sequence[Row]) -> list[str]:
    """Return the table of unit costs, and how well the simulation predicts what can be run here."""
    rows = [
        ("a participant's answer in one round", f"{1000 * units.round:.3g} ms"),
        ("one victim and iteration of gradient matching", f"{1000 * units.attack:.3g} ms"),
        ("the scheduler, for one cell", f"{1000 * units.scheduler:.3g} ms"),
        ("the start of a worker", f"{units.start:.2g} s"),
        ("feature party, one row", f"{1e6 * units.feature:.3g} µs"),
        ("label party, one row", f"{1e6 * units.label:.3g} µs"),
        ("on the wire, one row", f"{units.wire:.0f} bytes"),
        ("in memory, one row", f"{units.memory:.0f} bytes"),
        *((row.name, f"{row.value:.3g} {row.unit}") for row in checks),
    ]
    head = [
        f"Measured with {cores()} cores ({platform.machine()}), one torch thread each.",
        "",
        "| unit | cost |",
        "|---|---:|",
    ]
    return head + [f"| {name} | {value} |" for name, value in rows]


def write_page(path: Path, tables: dict[str, list[str]]) -> None:
    """Put tables between the marks `<!-- name -->` and `<!-- end -->` of a page."""
    text = path.read_text(encoding="utf-8")
    for name, lines in tables.items():
        place = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", text, re.DOTALL)
        if place is None:
            raise SystemExit(f"The page {path} has no place for the table `{name}`.")
        text = "\n".join([text[: place.start(1)], *lines, "", text[place.end(1) :]])
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Measure unit costs, check the simulation, and print or write the tables."""
    options = parser(__doc__)
    options.add_argument("--iterations", type=int, default=100, help="of each attack that is timed")
    options.add_argument("--rounds", type=int, default=20, help="of each training run that is timed")
    options.add_argument("--victims", type=int, default=16, help="in each cell")
    options.add_argument("--cells", type=int, default=12, help="defences of the plan that checks the simulation")
    options.add_argument("--batch", type=int, default=4096, help="rows of a split step")
    options.add_argument("--steps", type=int, default=20, help="split steps that are timed")
    options.add_argument("--page", type=Path, help="write the tables of this page")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    how = chosen.iterations, chosen.rounds, chosen.victims
    units = Units(*audit_units(*how), *split_units(chosen.batch, chosen.steps))
    checks = check_simulation(chosen.cells, *how)
    tables = {"units": unit_table(units, checks), "audits": audit_table(units), "splits": split_table(units)}
    for name, lines in tables.items():
        print("\n".join(["", name, *lines]))
    if chosen.page:
        write_page(chosen.page, tables)
    counted = dataclasses.asdict(units)
    costs = [
        Row(f"unit cost: {name}", value, "B" if name in ("wire", "memory") else "s") for name, value in counted.items()
    ]
    show([*costs, *checks], chosen.json)


if __name__ == "__main__":
    main()
