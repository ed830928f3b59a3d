"""An audit on two Ray workers against the same audit on one, and against two local processes.

The cells are the same: gradient matching on crops of the bundled photographs, one defence after the other. Ray is
started once, before anything is timed; what each audit starts for itself, its workers with their import of torch,
counts. Records are compared on the way. The file is not named after the package, which could then not be imported from
here.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from _rows import Row, parser, show

from leaktight import plans, running
from leaktight.core.record import Record
from leaktight.running.ray_cluster import Cluster
from leaktight.running.worker_pool import Workers


def planned(cells: int, iterations: int, victims: int) -> plans.Plan:
    """Return a plan of about so many cells, all equally long."""
    return plans.parse_plan(
        {
            "scenario": {"data": "photos", "model": "dlnet", "rounds": 0},
            "defences": [{"kind": "gaussian_noise", "std": [1e-6 * number for number in range(1, cells)]}],
            "attacks": [{"kind": "gradient_matching", "iterations": iterations}],
            "grid": {"victims": victims},
        }
    )


def timed(plan: plans.Plan, workers: Workers) -> tuple[float, list[Record]]:
    """Run an audit in a new folder; return the seconds it took and its records without theirs."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        records = running.run(plan, Path(folder) / "audit", workers=workers)
        seconds = time.perf_counter() - start
    return seconds, [record.model_copy(update={"seconds": 0.0}) for record in records]


def main() -> None:
    """Measure one and two workers in turn; the median of each counts."""
    options = parser(__doc__)
    options.add_argument("--cells", type=int, default=40, help="defences to attack")
    options.add_argument("--iterations", type=int, default=40, help="of each attack")
    options.add_argument("--victims", type=int, default=8, help="messages in each cell")
    options.add_argument("--repeats", type=int, default=1, help="audits of each kind")
    chosen = options.parse_args()
    plan = planned(chosen.cells, chosen.iterations, chosen.victims)
    spent: dict[str, list[float]] = {}
    found: list[list[Record]] = []
    with Cluster(1) as one:
        one.start()
        for _ in range(chosen.repeats):
            seconds, records = timed(plan, one)
            spent.setdefault("one worker on Ray", []).append(seconds)
            found.append(records)
    with Cluster(2) as two:
        two.start()
        ways: dict[str, Workers] = {"two workers on Ray": two, "two local processes": 2}
        for _ in range(chosen.repeats):
            for name, workers in ways.items():
                seconds, records = timed(plan, workers)
                spent.setdefault(name, []).append(seconds)
                found.append(records)
    medians = {name: statistics.median(times) for name, times in spent.items()}
    different = sum(one != other for records in found[1:] for one, other in zip(found[0], records, strict=True))
    rows = [Row(f"{name}, {len(found[0])} cells", seconds, "s") for name, seconds in medians.items()]
    rows += [
        Row("two workers on Ray against one", medians["one worker on Ray"] / medians["two workers on Ray"], "x", 1.7),
        Row(
            "two local processes against two on Ray",
            medians["two workers on Ray"] / medians["two local processes"],
            "x",
        ),
        Row("records that differ", different, "", 0, at_least=False),
    ]
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
