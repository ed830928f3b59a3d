"""Running: a plan becomes cells, cells become records.

`run(plan, folder)` is the whole interface for a program: it measures a plan, returns the records and keeps them in a
folder, which `Store.read` opens again.
"""

from leaktight.running.scheduler import Step, run
from leaktight.running.store import Store

__all__ = ["Step", "Store", "run"]
