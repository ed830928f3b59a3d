from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from leaktight.core import temporary
from leaktight.core.temporary import PREFIX, private_temporary, sweep

OWNER = """
import sys, time
from leaktight.core.temporary import private_temporary
with private_temporary() as folder:
    (folder / "secret").write_text("private")
    print(folder, flush=True)
    time.sleep(100)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def owner() -> tuple[subprocess.Popen[str], Path]:
    started = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    folder = Path(started.stdout.readline().strip())
    started.stdout.close()
    return started, folder


def test_what_a_killed_process_left_is_removed_and_that_of_a_living_one_is_not(place: Path) -> None:
    (killed, left), (living, kept) = owner(), owner()
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "secret").exists()
        with private_temporary() as own:
            assert not left.exists()
            assert (kept / "secret").read_text() == "private"
            assert own.stat().st_mode & 0o777 == 0o700
    finally:
        living.kill()
        living.wait()
    sweep()
    assert list(place.iterdir()) == []


def test_it_is_gone_after_an_error(place: Path) -> None:
    with pytest.raises(ValueError, match="bad"), private_temporary():
        raise ValueError("bad")
    assert list(place.iterdir()) == []


def test_what_is_not_ours_is_left_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, link, foreign = (place / f"{PREFIX}{name}" for name in ("plain", "link", "foreign"))
    (plain / "deep").mkdir(parents=True)
    target = place / "target"
    for folder in (target, foreign):
        folder.mkdir()
        (folder / temporary._LOCK).touch()
    link.symlink_to(target)
    if os.getuid() == 0:
        os.chown(foreign, 65534, 65534)
    else:
        foreign.chmod(0o500)
    sweep()
    assert all(path.exists() for path in (plain, link, target / temporary._LOCK, foreign / temporary._LOCK))


def test_a_folder_that_was_swept_before_it_was_locked_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    taken = iter([False, True])
    monkeypatch.setattr(temporary, "_lock", lambda descriptor: next(taken))
    folder, lock = temporary._make_folder()
    os.close(lock)
    assert folder.exists()
    assert next(taken, "none") == "none"
