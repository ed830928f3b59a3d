"""Plans: what an audit is to measure.

A plan comes from a file (`read_plan`), from a preset (`quick`, `standard`, `captured`), or is a `Plan` made by hand.
`running.run` measures it.
"""

from leaktight.plans.captured import capture_plan
from leaktight.plans.plan import Grid, Plan
from leaktight.plans.plan_file import parse_plan, read_plan
from leaktight.plans.presets import quick, standard

__all__ = ["Grid", "Plan", "capture_plan", "parse_plan", "quick", "read_plan", "standard"]
