from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leaktight.core import registry

TOYS = Path(__file__).parents[1] / "toys"


@pytest.fixture(scope="module")
def toys() -> Iterator[ModuleType]:
    """Install the toy plugin for one module's tests, here and in the worker processes started meanwhile."""
    registry.load()
    before = {family: dict(kinds) for family, kinds in registry._classes.items()}
    sys.path.insert(0, str(TOYS))
    yield importlib.import_module("leaktight_toys")
    sys.path.remove(str(TOYS))
    sys.modules.pop("leaktight_toys", None)
    registry._classes.clear()
    registry._classes.update(before)


@pytest.fixture
def toy_plan(toys: ModuleType) -> Callable[..., Any]:
    """Return a maker of small plans: settings of the scenario and the attack by prefix, grid settings by name."""
    from leaktight.audit.plan import Grid, Plan
    from leaktight.core.probe import Attempt
    from leaktight.metrics import MSE, PSNR

    def make(scenario: dict[str, Any] | None = None, defences: tuple[Any, ...] = (), attacks: Any = None, **grid: Any) -> Plan:
        attacks = attacks or {"toy": {}}
        probes = {n: Attempt(attack=toys.ToyAttack(**settings), metrics=(PSNR(), MSE())) for n, settings in attacks.items()}
        return Plan(
            scenarios={"1": toys.ToyScenario(**(scenario or {}))},
            defences=defences,
            probes=probes,
            grid=Grid(**{"victims": 4, **grid}),
        )

    return make
