"""What all tests share: one torch thread, programs that listen to signals, where real data may be, and a toy plugin."""

import importlib
import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from xdist.scheduler import LoadFileScheduling

from leaktight.core import registry

torch.set_num_threads(1)


CLUSTERS = ("tests/flower/", "tests/running/test_ray_")


class OneClusterAtATime(LoadFileScheduling):
    """Gives each file one process, and all files whose tests start clusters the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return "clusters" if nodeid.startswith(CLUSTERS) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneClusterAtATime | None:
    return OneClusterAtATime(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that start clusters, since they mostly wait for programs.

    Clusters are at the mercy of a busy machine, so what fails there is tried once more, and then it has failed.
    """
    # Ray first: it must be told where to listen before anything imports it, and Flower does.
    order = (*reversed(CLUSTERS), "")
    items.sort(key=lambda item: next(place for place, start in enumerate(order) if item.nodeid.startswith(start)))
    for item in items:
        if any(item.get_closest_marker(name) for name in ("flower", "ray")):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data with real data sets is not here")
    return folder


@pytest.fixture(scope="session")
def launch() -> Callable[..., "subprocess.Popen[Any]"]:
    """Return a `subprocess.Popen` for programs that a test sends a signal to.

    A suite in the background of a shell without job control ignores Ctrl-C, and whatever it starts inherits that.
    """

    def start(command: list[Any], **options: Any) -> "subprocess.Popen[Any]":
        # What has a handler here is at its default in the program; what is ignored here stays ignored there.
        before = {
            number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            return subprocess.Popen(command, **options)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    return start


@pytest.fixture(scope="session")
def made() -> ModuleType:
    """Return the maker of records by hand."""
    spec = importlib.util.spec_from_file_location("made_by_hand", Path(__file__).parent / "made.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TOYS = Path(__file__).parent / "toys"


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
    from leaktight.core.probe import Attempt
    from leaktight.metrics import MSE, PSNR
    from leaktight.plans.plan import Grid, Plan

    def make(
        scenario: dict[str, Any] | None = None, defences: tuple[Any, ...] = (), attacks: Any = None, **grid: Any
    ) -> Plan:
        attacks = attacks or {"toy": {}}
        probes = {
            n: Attempt(attack=toys.ToyAttack(**settings), metrics=(PSNR(), MSE())) for n, settings in attacks.items()
        }
        return Plan(
            scenarios={"1": toys.ToyScenario(**(scenario or {}))},
            defences=defences,
            probes=probes,
            grid=Grid(**{"victims": 4, **grid}),
        )

    return make
