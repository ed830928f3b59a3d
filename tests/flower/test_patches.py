"""Our patches of Flower's helpers, without a Flower that runs."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from leaktight.flower import patches

TELL = """
import os, pathlib, sys
words = sys.argv[1:]
held = pathlib.Path(words[words.index("--token-file") + 1])
print(oct(held.stat().st_mode & 0o777), held.read_text(), words)
"""


@pytest.fixture
def helper(tmp_path, monkeypatch):
    """Return an executor whose apps are scripts, and where it notes how they end."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    for name, value in patches.environment(folder, "client-0").items():
        monkeypatch.setenv(name, value)

    def make(code, name="flwr-clientapp"):
        script = tmp_path / name
        script.write_text(f"#!{sys.executable}\n{code}")
        script.chmod(0o700)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return patches.PrivateExecutor(), folder

    return make


def spec(**settings):
    fields = {"task_type": task_type(), "runtime_api_address": "127.0.0.1:9", "token": "s3cret", "insecure": True}
    fields |= {"root_certificates_path": None, "parent_pid": 7, "suppress_output": False}
    return SimpleNamespace(**{**fields, **settings})


def task_type():
    from flwr.supercore.constant import TaskType

    return TaskType.CLIENT_APP


def finish(executor):
    [(_, started, token)] = executor._running
    words = started.args
    started.wait()
    executor.reconcile()
    return words, token


def test_a_token_is_in_a_file_for_its_owner_alone_and_gone_afterwards(helper, capfd):
    executor, folder = helper(TELL)
    executor.launch(spec())
    words, token = finish(executor)
    assert not any("s3cret" in word for word in words)
    mode, held, *_ = capfd.readouterr().out.split()
    assert (mode, held) == ("0o600", "s3cret")
    assert token.parent == folder / "tokens"
    assert list(token.parent.iterdir()) == []
    assert (folder / "tokens").stat().st_mode & 0o777 == 0o700
    assert patches.app_end(folder, "client-0") == ""
    assert words[-3:] == ["--insecure", "--parent-pid", "7"]


def test_an_app_that_is_killed_is_noted_and_one_that_fails_is_flowers(helper):
    executor, folder = helper("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    executor.launch(spec(suppress_output=True))
    until = time.monotonic() + 60
    while executor._running and time.monotonic() < until:
        executor.reconcile()
    assert patches.app_end(folder, "client-0") == "Flower's flwr-clientapp ended (signal SIGKILL)"
    patches.forget_app_end(folder, "client-0")
    assert patches.app_end(folder, "client-0") == ""
    executor, folder = helper("raise SystemExit(3)")
    executor.launch(spec(insecure=False, root_certificates_path="ca.pem"))
    words, _ = finish(executor)
    assert words[-4:-2] == ["--root-certificates", "ca.pem"]
    assert patches.app_end(folder, "client-0") == ""


def test_the_app_of_the_server_that_fails_is_told_of_after_some_time(helper, monkeypatch):
    from flwr.supercore.constant import TaskType

    executor, folder = helper("raise SystemExit(3)", "flwr-serverapp")
    executor.launch(spec(task_type=TaskType.SERVER_APP))
    finish(executor)
    assert patches.app_end(folder, "client-0") == ""
    monkeypatch.setattr(patches, "GRACE", -1.0)
    assert patches.app_end(folder, "client-0") == "Flower's flwr-serverapp ended (exit code 3)"


def test_any_task_can_be_started():
    assert patches.PrivateExecutor().get_eligible_capacity({1}, insecure=True) == ({1}, set())


class Pool:
    """A pool of Ray workers as Flower has one."""

    def __init__(self):
        self.pool, self._future_to_actor = [], {"future": "old"}

    def create_actor_fn(self):
        return "new"


def test_a_worker_that_died_is_replaced_and_any_other_is_given_back():
    exceptions = pytest.importorskip("ray.exceptions")
    pool = Pool()
    patches._return_worker(pool, "future")
    for error in (ValueError("of the app"), exceptions.ActorDiedError()):
        pool._future_to_actor = {"future": "old"}
        try:
            raise error
        except (ValueError, exceptions.RayActorError):
            patches._return_worker(pool, "future")
    assert pool.pool == ["old", "old", "new"]


def test_a_simulation_ends_when_its_ray_is_gone_and_not_when_that_is_stopped(monkeypatch):
    worker = pytest.importorskip("ray._private.worker")

    def part(code):
        return SimpleNamespace(process=SimpleNamespace(poll=lambda: code))

    looks = []
    nodes = [
        None,
        SimpleNamespace(all_processes={"raylet": [part(None)], "dashboard": [part(1)]}),
        # Ray stops its own parts, and is forgotten.
        *[SimpleNamespace(all_processes={"raylet": [part(0)]})] * 2,
        None,
        *[SimpleNamespace(all_processes={"gcs_server": [part(-9)], "raylet": [part(None)]})] * patches.LOOKS,
    ]

    def look(_):
        looks.append(1)
        monkeypatch.setattr(worker, "_global_node", nodes[len(looks) - 1])

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr(patches, "time", SimpleNamespace(sleep=look))
    monkeypatch.setattr(patches, "os", SimpleNamespace(_exit=leave))
    with pytest.raises(SystemExit) as ended:
        patches._end_with_ray()
    assert (ended.value.code, len(looks)) == (1, len(nodes))


def test_the_programs_run_flowers_own(tmp_path):
    patches.write_programs(tmp_path, sys.executable)
    assert {path.name for path in tmp_path.iterdir()} == {"flower-superexec", "flower-supernode", "flwr-simulation"}
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o700
        done = subprocess.run([path, "--help"], capture_output=True, text=True, check=True)
        assert f"usage: {path.name} " in done.stdout
