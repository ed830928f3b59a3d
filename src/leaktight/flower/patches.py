"""Patches of Flower's helpers: no token in a command line, lost workers replaced, dead nodes noticed sooner.

Flower starts its helpers by name, so programs of these names in a folder of ours come first in the path. This file is
what they run; it runs as a program of its own, many times, so it uses nothing of Leaktight, and of Flower only what it
needs.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

ENDS, TOKENS = "LEAKTIGHT_ENDS", "LEAKTIGHT_TOKENS"
"""The variables that say where a helper writes how an app ended, and where its tokens go."""
HEARTBEAT = 10
"""After so many seconds, twice, without a sign of life a node counts as gone: the least that the SuperLink accepts."""


LOOKS, PAUSE = 5, 2.0
"""How often a simulation looks after its Ray, in seconds, and how many looks in a row must find it dead."""
GRACE = 15.0
"""So many seconds Flower has to say why an app failed."""


def write_programs(folder: Path, python: str) -> None:
    """Write the patched programs into a folder, for the path of Flower's processes."""
    for name in PROGRAMS:
        words = shlex.join([python, "-P", __file__, name])
        (folder / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (folder / name).chmod(0o700)


def environment(folder: Path, name: str) -> dict[str, str]:
    """Return what the helpers of a program need to know.

    Args:
        folder: for its owner alone.
        name: of the program.
    """
    for place in (folder / "ends", folder / "tokens"):
        place.mkdir(mode=0o700, exist_ok=True)
    return {ENDS: str(folder / "ends" / name), TOKENS: str(folder / "tokens")}


def app_end(folder: Path, name: str) -> str:
    """Return how a program's app ended before its time, as the start of a sentence, or nothing if none did.

    One that failed by itself is reported only after some seconds: in these Flower says why.
    """
    path = folder / "ends" / name
    if not path.is_file():
        return ""
    cause = path.read_text()
    return cause if "signal" in cause or time.time() - path.stat().st_mtime > GRACE else ""


def forget_app_end(folder: Path, name: str) -> None:
    """Forget how an app was killed, because another program took the place of the one that ran it."""
    (folder / "ends" / name).unlink(missing_ok=True)


class PrivateExecutor:
    """Starts Flower's apps with their tokens in private files; Flower's own executor puts them in the command line.

    It also notes when an app is killed, or the one of the server fails: Flower itself takes a minute or longer to see
    it.
    """

    def __init__(self) -> None:
        self._running: list[tuple[str, subprocess.Popen[bytes], Path]] = []

    def get_eligible_capacity(self, supported_task_types: set[Any], **_: object) -> tuple[set[Any], set[str]]:
        """Return that any task can be started."""
        return supported_task_types, set()

    def wait_for_capacity(self, *_: object, **__: object) -> None:
        """Return at once."""

    def launch(self, spec: Any) -> Any:
        """Start the app that Flower asks for."""
        from flwr.supercore.constant import TASK_TYPE_TO_APPIO_API_ADDRESS_ARG, TASK_TYPE_TO_COMMAND
        from flwr.supercore.superexec.executor.types import LaunchResult

        descriptor, token = tempfile.mkstemp(dir=os.environ[TOKENS])
        with os.fdopen(descriptor, "w") as file:
            file.write(spec.token)
        name = TASK_TYPE_TO_COMMAND[spec.task_type]
        words = [
            name,
            TASK_TYPE_TO_APPIO_API_ADDRESS_ARG[spec.task_type],
            spec.runtime_api_address,
            "--token-file",
            token,
        ]
        if spec.insecure:
            words.append("--insecure")
        elif spec.root_certificates_path is not None:
            words += ["--root-certificates", spec.root_certificates_path]
        if spec.parent_pid is not None:
            words += ["--parent-pid", str(spec.parent_pid)]
        output = subprocess.DEVNULL if spec.suppress_output else None
        process = subprocess.Popen(words, stdout=output, stderr=output)  # noqa: S603 - the words are Flower's
        self._running.append((name, process, Path(token)))
        return LaunchResult.accepted()

    def reconcile(self) -> None:
        """Look after the apps that ended: Flower calls it every second."""
        for app in list(self._running):
            name, process, token = app
            code = process.poll()
            if code is not None:
                self._running.remove(app)
                token.unlink(missing_ok=True)
                # A node answers for a client's app that fails.
                if code < 0 or (code and name != "flwr-clientapp"):
                    cause = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
                    Path(os.environ[ENDS]).write_text(f"Flower's {name} ended ({cause})")

    def close(self) -> None:
        """Leave the apps to whoever ends them."""


def superexec() -> None:
    """Run the process that starts apps."""
    # The package has a function of the module's name.
    module = import_module("flwr.supercore.superexec.run_superexec")
    vars(module)["get_executor"] = lambda *_, **__: PrivateExecutor()
    import_module("flwr.supercore.cli.flower_superexec").flower_superexec()


def supernode() -> None:
    """Run a node that gives signs of life more often."""
    for name in ("flwr.supercore.heartbeat", "flwr.supernode.fleet_http_connection"):
        vars(import_module(name))["HEARTBEAT_DEFAULT_INTERVAL"] = HEARTBEAT
    import_module("flwr.supernode.cli.flower_supernode").flower_supernode()


def simulation() -> None:
    """Run a simulation in which a Ray worker that died is replaced, and that ends with its Ray.

    Flower's own gives a dead worker every next message, too, and waits for ever where Ray itself is gone.
    """
    # It sets up the environment for Ray, so it comes first.
    app = import_module("flwr.simulation.app")
    pool = import_module("flwr.simulation.ray_transport.ray_actor").BasicActorPool
    pool.add_actor_back_to_pool = _return_worker
    threading.Thread(target=_end_with_ray, daemon=True).start()
    app.flwr_simulation()


def _end_with_ray() -> None:
    """End this process when a part of its Ray that it cannot do without has been gone for several looks."""
    from ray._private import worker

    looks = 0
    while looks < LOOKS:
        time.sleep(PAUSE)
        node = worker._global_node
        # A copy, because Ray may be starting more of them.
        parts: dict[str, Any] = dict(node.all_processes) if node is not None else {}
        needed = [part.process for name in ("gcs_server", "raylet") for part in parts.get(name, ())]
        # At its end Ray stops them itself, and forgets them soon.
        looks = looks + 1 if any(process.poll() is not None for process in needed) else 0
    os._exit(1)


def _return_worker(pool: Any, future: Any) -> None:
    """Return a message's worker to its pool, or a new one if it died: then its error is the one being handled."""
    from ray.exceptions import RayActorError

    worker = pool._future_to_actor.pop(future)
    pool.pool.append(pool.create_actor_fn() if isinstance(sys.exc_info()[1], RayActorError) else worker)


PROGRAMS: dict[str, Callable[[], None]] = {
    "flower-superexec": superexec,
    "flower-supernode": supernode,
    "flwr-simulation": simulation,
}

if __name__ == "__main__":
    # Flower's parsers see their own program's words.
    del sys.argv[0]
    PROGRAMS[sys.argv[0]]()
