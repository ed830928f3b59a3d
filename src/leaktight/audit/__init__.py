"""Audits: a plan becomes cells, cells become records, records become a verdict.

`run(plan, out)` is the whole interface for a program: it takes a plan (`read_plan`, `quick`, `standard`, or `Plan` itself),
returns the records and keeps them in a folder, which `Store.read` opens again.
"""

from leaktight.audit.captured import captured
from leaktight.audit.driver import Step, run
from leaktight.audit.plan import Grid, Plan
from leaktight.audit.planfile import parse_plan, read_plan
from leaktight.audit.presets import quick, standard
from leaktight.audit.store import Store

__all__ = ["Grid", "Plan", "Step", "Store", "captured", "parse_plan", "quick", "read_plan", "run", "standard"]
