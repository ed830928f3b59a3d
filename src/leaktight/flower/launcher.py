"""The launcher: starts what a training run on Flower needs, follows it, and stops everything, finished or not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leaktight.core.errors import LeaktightError
from leaktight.core.metric import Reading
from leaktight.core.private import private_folder, write_private
from leaktight.core.temporary import private_temporary
from leaktight.flower.app import FAILURE_FILE, PROGRESS_FILE
from leaktight.flower.processes import LOOPBACK, Programs, free_port
from leaktight.flower.remote import PATIENCE
from leaktight.learning.joint import CURVE_FILE, MODEL_FILE, REVEAL_FILE, JointTraining, Round

OnRound = Callable[[Round], None]
LOG_FOLDER = "flower-logs"
SUPERLINK = "superlink"
PROFILE = "leaktight"
_PAUSE = 0.2
_PROJECT = """[project]
name = "leaktight-training"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "leaktight"

[tool.flwr.app.components]
serverapp = "leaktight.flower.app:server_app"
clientapp = "leaktight.flower.app:client_app"

[tool.flwr.app.config]
"""


@contextmanager
def open_programs(out: Path, trust: bool = False) -> Iterator[Programs]:
    """Return a place for Flower's programs; after the block they are gone, with their children and files.

    Results of an earlier training run in the same folder are removed first, so that nobody takes them for those of this
    one. Logs stay in `flower-logs` if the block fails.

    Args:
        out: where results and logs go.
        trust: whether other users of this machine may reach the programs.
    """
    private_folder(out)
    for name in (MODEL_FILE, REVEAL_FILE, CURVE_FILE, FAILURE_FILE, PROGRESS_FILE):
        (out / name).unlink(missing_ok=True)
    logs = out / LOG_FOLDER
    _remove_logs(logs)
    with private_temporary() as folder, Programs(folder, logs, trust) as programs:
        yield programs
    _remove_logs(logs)


def start_superlink(programs: Programs, *words: str, authority: Path | None = None) -> str:
    """Start a SuperLink on loopback and return its address.

    Args:
        programs: where it is started.
        words: more words for its command line.
        authority: the certificate that its own is signed by; None for one without TLS.
    """
    port = free_port()
    programs.start(
        SUPERLINK,
        "flower-superlink",
        *("--host", LOOPBACK, "--port", str(port), "--disable-runtime-dependency-installation"),
        *words,
    )
    programs.wait_for(SUPERLINK, port)
    address = f"{LOOPBACK}:{port}"
    write_profile(programs.folder / "home", address, authority)
    return address


def run_training(
    programs: Programs,
    training: JointTraining,
    out: Path,
    on_round: OnRound | None = None,
    *words: str,
    patience: float = PATIENCE,
    tend: Callable[[], None] = lambda: None,
) -> None:
    """Run the app on the SuperLink of the profile and wait until the model is written.

    Args:
        programs: where the SuperLink was started.
        training: what is trained.
        out: where the model goes.
        on_round: called after a round; of several that end quickly, after the last.
        words: for `flwr run`.
        patience: after how many seconds without an answer a message is sent again.
        tend: called now and then, to look after what else was started.
    """
    project = write_project(programs.folder / "project", training, out, patience)
    run = programs.start("run", "flwr", "run", str(project), PROFILE, "--stream", *words)
    seen = 0
    while run.poll() is None and not (out / FAILURE_FILE).exists():
        seen = _report_round(out, seen, on_round)
        programs.check(SUPERLINK)
        tend()
        time.sleep(_PAUSE)
    _report_round(out, seen, on_round)
    _require_model(programs, out)


def write_project(folder: Path, training: JointTraining, out: Path, patience: float) -> Path:
    """Write the project that Flower builds, and return its folder: only settings, as the app comes with Leaktight.

    Args:
        folder: where to.
        training: what all parties agree on; it goes to every node.
        out: where the server writes the model.
        patience: after how many seconds without an answer a message is sent again.
    """
    settings = {"training": json.dumps(training.to_dict()), "out": str(out.absolute()), "patience": float(patience)}
    # A text or a number of JSON is one of TOML, too.
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
    write_private(folder / "pyproject.toml", (_PROJECT + "".join(lines)).encode())
    return folder


def write_profile(home: Path, address: str, authority: Path | None) -> None:
    """Write where Flower's command finds the SuperLink.

    Args:
        home: Flower's own folder.
        address: host and port.
        authority: the certificate that the SuperLink's is signed by; None for a connection without TLS, on loopback
            alone.
    """
    security = (
        "insecure = true" if authority is None else f"root-certificates = {json.dumps(str(authority.absolute()))}"
    )
    default = f"[superlink]\ndefault = {json.dumps(PROFILE)}\n"
    profile = f"[superlink.{PROFILE}]\naddress = {json.dumps(address)}\n{security}\n"
    write_private(home / "config.toml", f"{default}\n{profile}".encode())


def _remove_logs(folder: Path) -> None:
    for log in folder.glob("*.log"):
        log.unlink()
    # It may not be there, or hold something of the user's.
    with suppress(OSError):
        folder.rmdir()


def _report_round(out: Path, seen: int, on_round: OnRound | None) -> int:
    """Report a round that was not seen yet; return which was the last."""
    progress = _read(out / PROGRESS_FILE)
    if progress is None or progress["played"] <= seen:
        return seen
    if on_round is not None:
        on_round(Round(progress["played"], tuple(Reading.model_validate(reading) for reading in progress["utility"])))
    return int(progress["played"])


def _require_model(programs: Programs, out: Path) -> None:
    failure = _read(out / FAILURE_FILE)
    if failure is not None:
        raise LeaktightError(failure["reason"])
    if _read(out / CURVE_FILE) is None:
        raise LeaktightError(
            f"The training run on Flower ended without a model ({programs.last_message('run')}). "
            f"See the logs in `{programs.logs}` for more."
        )


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.is_file() else None
