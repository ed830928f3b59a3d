"""Flower as an engine: starts what a training needs, follows it, and stops it, finished or not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leaktight.core.errors import LeaktightError
from leaktight.core.metric import Reading
from leaktight.core.private import private_folder
from leaktight.core.temporary import private_temporary
from leaktight.flower.app import FAILURE_FILE, PROGRESS_FILE
from leaktight.flower.processes import LOOPBACK, Programs, free_port
from leaktight.flower.project import PROFILE, write_profile, write_project
from leaktight.flower.remote import PATIENCE
from leaktight.learning.joint import CURVE_FILE, MODEL_FILE, REVEAL_FILE, JointTraining, Round

After = Callable[[Round], None]
LOG_FOLDER = "flower-logs"
SUPERLINK = "superlink"
_PAUSE = 0.2


@contextmanager
def workplace(out: Path, trust: bool = False) -> Iterator[Programs]:
    """Return a place for Flower's programs; after the block they are gone, with all that they started and their own files.

    Results of an earlier training in the same folder are removed first, so that nobody takes them for those of this one. Logs stay in
    `flower-logs` if the block fails.

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


def _remove_logs(folder: Path) -> None:
    for log in folder.glob("*.log"):
        log.unlink()
    # It may not be there, or hold something of the user's.
    with suppress(OSError):
        folder.rmdir()


def follow(
    programs: Programs,
    training: JointTraining,
    out: Path,
    after: After | None = None,
    *words: str,
    patience: float = PATIENCE,
    tend: Callable[[], None] = lambda: None,
) -> None:
    """Run the app on the SuperLink of the profile and wait until the model is written.

    Args:
        programs: where the SuperLink was started.
        training: what is trained.
        out: where the model goes.
        after: told of rounds; of several that end quickly, of the last.
        words: for `flwr run`.
        patience: after how many seconds without an answer a message is sent again.
        tend: called now and then, to look after what else was started.
    """
    project = write_project(programs.folder / "project", training, out, patience)
    run = programs.start("run", "flwr", "run", str(project), PROFILE, "--stream", *words)
    seen = 0
    while run.poll() is None and not (out / FAILURE_FILE).exists():
        seen = _told(out, seen, after)
        programs.check(SUPERLINK)
        tend()
        time.sleep(_PAUSE)
    _told(out, seen, after)
    _checked(programs, out)


def superlink(programs: Programs, *words: str, authority: Path | None = None) -> str:
    """Start a SuperLink on loopback and return its address.

    Args:
        programs: where it is started.
        words: what else it is told.
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


def _told(out: Path, seen: int, after: After | None) -> int:
    """Tell of a round that was not seen yet; return which was the last."""
    found = _read(out / PROGRESS_FILE)
    if found is None or found["played"] <= seen:
        return seen
    if after is not None:
        after(Round(found["played"], tuple(Reading.model_validate(reading) for reading in found["utility"])))
    return int(found["played"])


def _checked(programs: Programs, out: Path) -> None:
    failure = _read(out / FAILURE_FILE)
    if failure is not None:
        raise LeaktightError(failure["reason"])
    if _read(out / CURVE_FILE) is None:
        raise LeaktightError(
            f"The training on Flower ended without a model ({programs.said('run')}). See the logs in `{programs.logs}` for more."
        )


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.is_file() else None
