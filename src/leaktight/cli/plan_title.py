"""The title of a plan: what is about to run, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leaktight.core.display import count
from leaktight.core.memory import SEARCH_MEMORY
from leaktight.core.probe import Attempt
from leaktight.findings.display import name_of

if TYPE_CHECKING:
    from leaktight.plans.plan import Plan
    from leaktight.running.worker_pool import Workers


def title_of_plan(plan: Plan, workers: Workers) -> str:
    """Say how many cells a plan has and of what, who computes them, and how much memory a search takes.

    Example:
        >>> from leaktight.plans import quick
        >>> title_of_plan(quick(), 2).partition(": ")[0]
        'Quick audit'
    """
    cells = plan.cells()
    checks = sum(cell.purpose != "measure" for cell in cells)
    grid = plan.grid
    attacks = "attack" if all(isinstance(probe, Attempt) for probe in plan.probes.values()) else "measurement"
    several = {
        "scenario": len(plan.scenarios),
        "batch size": len(grid.batch_sizes),
        "stage": len(grid.stages),
        "seed": len(grid.seeds),
    }
    factors = [
        _defences(plan),
        count(len(plan.probes), attacks),
        *(count(number, noun) for noun, number in several.items() if number > 1),
    ]
    more = [f"{count(len(plan.further), 'further attack')}" if plan.further else "", _checks(checks)]
    return (
        f"{plan.title}: {count(len(cells), 'cell')}: {' x '.join(factors)}"
        f"{''.join(f', and {one}' for one in more if one)}. {_who(workers)}"
    )


def _defences(plan: Plan) -> str:
    bare = dict.fromkeys(name_of(scenario.baseline) for scenario in plan.scenarios.values()) if plan.bare else {}
    names = [*bare, *([count(len(plan.defences), "defence")] if plan.defences else [])]
    return " and ".join(names)


def _checks(number: int) -> str:
    return f"{count(number, 'check')} of the audit itself" if number else ""


def _who(workers: Workers) -> str:
    """Say who computes, and how much memory a search takes at a time."""
    who = count(workers, "worker") if isinstance(workers, int) else "Ray"
    return f"{who}; a search holds at most {SEARCH_MEMORY / 2**30:g} GiB of candidates at a time in each."
