"""What goes wrong around Ray, without one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.running import ray_cluster
from leaktight.running.file_cache import FileCache
from leaktight.running.ray_cluster import LOOPBACK, Cluster
from leaktight.running.ray_workers import RayWorker, RayWorkers
from leaktight.running.worker_pool import WorkerSetup


class RayError(Exception):
    """What Ray raises."""


class Mortal:
    """A Ray whose actors say once that they are ready, if at all, and then die."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self, ready: bool) -> None:
        self.answers, self.made, self.killed = ready, 0, 0

    def remote(self, _: object) -> Any:
        self.made += 1
        method = SimpleNamespace(
            remote=lambda *_: object(), options=lambda **_: SimpleNamespace(remote=lambda *_: iter(()))
        )
        actor = SimpleNamespace(ready=method, do=method)
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: actor))

    def wait(self, refs: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return refs[:1], refs[1:]

    def get(self, _: object) -> None:
        if not self.answers:
            raise RayError("The actor died.\n  ImportError: no leaktight here.\n")

    def kill(self, _: object) -> None:
        self.killed += 1


def make_worker(cache: FileCache, options: Any) -> Any:
    """Return a worker function that says how far it is, leaves a file and answers with what it was given."""

    def answer(content: bytes, progress: Any) -> list[bytes]:
        if content == b"fail":
            raise ValueError("no such task")
        progress(1, 2)
        cache.write("made", b"new")
        return [content, *(cache.read(name) or b"" for name in ("first", "sent", "old"))]

    return SimpleNamespace(answer=answer)


def test_a_task_whose_workers_all_die_is_given_up(tmp_path: Path, byte_task: Any) -> None:
    ray: Any = Mortal(ready=True)
    with RayWorkers(ray, 1, WorkerSetup(make_worker, tmp_path)) as pool:
        pool.submit(byte_task("one"))
        result = pool.next(lambda *_: None)
    assert (
        result.lost == "The worker process died 2 times (lost by Ray). If memory is short, use fewer workers or fewer "
        "victims."
    )
    assert (ray.made, ray.killed) == (2, 2)


def test_workers_that_cannot_start_end_the_work_after_some(tmp_path: Path, byte_task: Any) -> None:
    ray: Any = Mortal(ready=False)
    with RayWorkers(ray, 1, WorkerSetup(make_worker, tmp_path)) as pool:
        pool.submit(byte_task("one"))
        with pytest.raises(
            LeaktightError, match=r"could not start on Ray \(ImportError: no leaktight here\). Install the same"
        ):
            pool.next(lambda *_: None)
    assert ray.made == 3


def test_an_actor_holds_in_memory_what_it_was_sent_and_returns_what_it_made(tmp_path: Path) -> None:
    before = list(sys.path)
    actor = RayWorker(WorkerSetup(make_worker, tmp_path / "elsewhere"), str(tmp_path / "gone"), before, ["first"], b"a")
    assert sys.path == before
    list(actor.do(b"one", (), ["old"], b"c"))
    told = list(actor.do(b"two", ("made", "not made"), ["sent"], b"b"))
    assert told == [(1, 2), {"parts": [b"two", b"a", b"b", b""], "files": {"made": b"new"}}]
    with pytest.raises(ValueError, match="no such task"):
        list(actor.do(b"fail", (), []))
    assert list(tmp_path.iterdir()) == []


def test_without_ray_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with Cluster(2) as cluster, pytest.raises(InvalidValue, match=r"needs the package ray.*Install `leaktight\[ray\]`"):
        cluster(WorkerSetup(make_worker, tmp_path))


class Reachable:
    """A Ray of some machines that is reached, or not."""

    util = SimpleNamespace(get_node_ip_address=lambda: "192.0.2.7")

    def __init__(self, machines: int, error: Exception | None = None) -> None:
        self.machines, self.error, self.stopped, self.asked = machines, error, 0, {}
        self._raylet = Native()

    def is_initialized(self) -> bool:
        return False

    def init(self, **asked: Any) -> None:
        self.asked = asked
        if self.error:
            raise self.error

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeManagerAddress": f"192.0.2.{number}", "Alive": True} for number in range(self.machines)]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def shutdown(self) -> None:
        self.stopped += 1


class Native:
    """The part of Ray that reads its settings from the environment, once and when it is told to."""

    class AuthenticationMode:
        DISABLED, TOKEN = "disabled", "token"

    def __init__(self, able: bool = True) -> None:
        self.able, self.mode = able, "disabled"
        self.Config = SimpleNamespace(initialize=self.read)
        self.AuthenticationTokenLoader = SimpleNamespace(instance=lambda: SimpleNamespace(reset_cache=lambda: None))

    def read(self, _: str) -> None:
        self.mode = os.environ.get("RAY_AUTH_MODE", "disabled") if self.able else "disabled"

    def get_authentication_mode(self) -> str:
        return self.mode


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("RAY_USE_TLS", raising=False)

    def install(ray: Reachable) -> Reachable:
        monkeypatch.setattr(ray_cluster, "_import_ray", lambda **_: ray)
        return ray

    return install


@pytest.fixture
def address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_several_machines_must_speak_tls(
    installed: Any, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ray = installed(Reachable(2))
    with (
        Cluster(address=address) as cluster,
        pytest.raises(InvalidValue, match=r"is 2 machines that speak without TLS"),
    ):
        cluster(WorkerSetup(make_worker, tmp_path))
    assert ray.stopped
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with Cluster(8, address) as cluster:
        assert cluster(WorkerSetup(make_worker, tmp_path))._size == 3
    assert ray.asked["address"] == address


def test_an_address_where_no_ray_is(installed: Any, address: str, tmp_path: Path) -> None:
    installed(Reachable(1, ConnectionError("ray.init() found nothing. Please start one.\nMore.")))
    with (
        Cluster(address=address) as cluster,
        pytest.raises(InvalidValue, match=r"no Ray to be reached at `127.*: ray.init\(\) found"),
    ):
        cluster(WorkerSetup(make_worker, tmp_path))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"no Ray to be reached at `127.0.0.1:1`: connection refused"),
        ("head", r"must have the form `host:port`. Got 'head' instead"),
        ("head:many", r"must have the form `host:port`. Got 'head:many' instead"),
        ("127.0.0.1:99999", r"no Ray to be reached at `127.0.0.1:99999`"),
    ],
)
def test_an_address_where_nobody_is(installed: Any, tmp_path: Path, address: str, message: str) -> None:
    installed(Reachable(1))
    with Cluster(address=address) as cluster, pytest.raises(InvalidValue, match=message):
        cluster(WorkerSetup(make_worker, tmp_path))


def test_a_ray_that_listens_beyond_loopback_is_stopped(installed: Any, tmp_path: Path) -> None:
    ray = installed(Reachable(1))
    with Cluster(1) as cluster, pytest.raises(LeaktightError, match="Ray must listen on loopback alone"):
        cluster(WorkerSetup(make_worker, tmp_path))
    assert ray.stopped
    assert ray.asked["address"] == "local"


class Unable(Reachable):
    """A Ray of which a part starts, and the whole only after some attempts."""

    util = SimpleNamespace(get_node_ip_address=lambda: LOOPBACK)

    def __init__(self, failures: int, error: BaseException) -> None:
        super().__init__(1)
        self.failures, self.why, self.parts, self.folders = (
            failures,
            error,
            list[subprocess.Popen[bytes]](),
            list[Path](),
        )

    def init(self, **asked: Any) -> None:
        self.folders.append(Path(asked["_temp_dir"]).parent)
        if len(self.folders) <= self.failures:
            self.parts.append(
                subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)", asked["_temp_dir"]])
            )
            raise self.why


def test_a_start_that_fails_is_tried_again_and_leaves_nothing(installed: Any) -> None:
    ray = installed(Unable(2, RuntimeError("Timed out waiting for a file.\nMore.")))
    with Cluster(1) as cluster:
        assert cluster.start() is ray
        assert [folder.exists() for folder in ray.folders] == [False, False, True]
    assert [part.wait() for part in ray.parts] == [-signal.SIGKILL] * 2
    assert not ray.folders[2].exists()


def test_a_ray_that_never_starts_is_one_sentence_each_time_it_is_asked_for(installed: Any) -> None:
    ray = installed(Unable(9, RuntimeError("Timed out waiting for a file.\nMore.")))
    with Cluster(1) as cluster:
        for _ in range(2):
            with pytest.raises(
                LeaktightError, match=r"^Ray could not be started here: Timed out waiting for a file. Try again"
            ):
                cluster.start()
    assert [part.wait() for part in ray.parts] == [-signal.SIGKILL] * 6
    assert not any(folder.exists() for folder in ray.folders)


def test_a_start_that_is_interrupted_is_not_tried_again(installed: Any) -> None:
    ray = installed(Unable(9, KeyboardInterrupt()))
    with Cluster(1) as cluster, pytest.raises(KeyboardInterrupt):
        cluster.start()
    assert [part.wait() for part in ray.parts] == [-signal.SIGKILL]
    assert not ray.folders[0].exists()


def test_everybody_is_asked_for_a_secret_in_a_file_for_its_owner_alone(
    installed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "a person's own")
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    ray = installed(Unable(0, RuntimeError()))
    with Cluster(1) as cluster:
        cluster.start()
        assert ray._raylet.mode == "token"
        assert "RAY_AUTH_TOKEN" not in os.environ
        token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
        assert len(token.read_text()) == 64
        assert (token.stat().st_mode & 0o777, token.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not token.exists()
    assert ray._raylet.mode == "disabled"
    assert (os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN"]) == ("disabled", "a person's own")
    assert "RAY_AUTH_TOKEN_PATH" not in os.environ


def test_a_ray_that_asks_for_no_secret_is_not_started(installed: Any) -> None:
    ray = installed(Unable(0, RuntimeError()))
    ray._raylet = Native(able=False)
    with (
        Cluster(1) as cluster,
        pytest.raises(LeaktightError, match=r"Ray must ask everybody for a token, and this one cannot"),
    ):
        cluster.start()
    assert ray.folders == []


def test_ray_does_not_take_over_what_happens_on_sigterm(installed: Any) -> None:
    ray, before = installed(Unable(0, RuntimeError())), signal.getsignal(signal.SIGTERM)
    init = ray.init
    ray.init = lambda **asked: (init(**asked), signal.signal(signal.SIGTERM, lambda *_: None))
    with Cluster(1) as cluster:
        cluster.start()
        assert signal.getsignal(signal.SIGTERM) is before


def test_a_busy_machine_is_given_time_unless_a_person_says_otherwise() -> None:
    environment = {"RAY_worker_register_timeout_seconds": "7"}
    ray_cluster.private_environment(environment)
    assert environment["RAY_worker_register_timeout_seconds"] == "7"
    assert float(environment["RAY_gcs_rpc_server_connect_timeout_s"]) > 5
