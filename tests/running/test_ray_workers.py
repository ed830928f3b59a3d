"""One Ray with two workers serves every question here, because each start takes seconds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from leaktight import plans, running
from leaktight.core.record import Record, Status
from leaktight.data import Digits
from leaktight.models import MLP
from leaktight.running.audit_task import AuditResult, AuditTask
from leaktight.running.audit_worker import ELSEWHERE, audit_setup
from leaktight.running.fingerprint import Fingerprint
from leaktight.running.ray_cluster import LOOPBACK, Cluster
from leaktight.running.ray_workers import RayWorkers, _Worker
from leaktight.running.scheduler import Step
from leaktight.running.store import TRAINING_FOLDER
from leaktight.running.training_cache import TrainingCache
from leaktight.running.worker_pool import PoolResult, WorkerSetup
from leaktight.search import Search, search

pytestmark = [pytest.mark.ray, pytest.mark.skipif(find_spec("ray") is None, reason="the package ray is not installed")]
Plans = Callable[..., Any]


@pytest.fixture(scope="module")
def cluster(toys: ModuleType) -> Iterator[Cluster]:
    before = descendants(os.getpid())
    with Cluster(workers=2) as made:
        # Here, so that a start that fails is reported once for all tests, as what it is.
        ray = made.start()
        yield made
        files, below = Path(os.environ["RAY_AUTH_TOKEN_PATH"]).parent, descendants(os.getpid()) - before
        assert files.stat().st_mode & 0o777 == 0o700
        assert below
    assert not ray.is_initialized()
    assert not files.exists()
    assert not below & descendants(os.getpid())


def descendants(root: int) -> set[tuple[int, str]]:
    """Return the processes below one that live, each with when it was started, because numbers are used again."""
    parents, starts = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
                starts[int(entry.name)] = fields[19]
    found, size = {root}, 0
    while len(found) > size:
        size = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return {(pid, starts[pid]) for pid in found - {root}}


def listening(pids: set[int]) -> set[tuple[str, int]]:
    """Return the addresses, in hexadecimal, and ports on which processes listen."""
    inodes = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    found = [row[1].partition(":") for row in rows if row[3] == "0A" and row[9] in inodes]
    return {(address, int(port, 16)) for address, _, port in found}


PYTESTS_OWN = listening({os.getpid()})
"""On what pytest listens itself, to count what it runs again."""


def test_a_worker_has_no_say_in_which_files_are_written(tmp_path: Path, byte_task: Any) -> None:
    """A machine of a cluster that answers with more than was asked for, without a Ray."""
    said = {"parts": [b"done"], "files": {"asked": b"1", "other": b"2", "../beyond": b"3"}}
    ray: Any = SimpleNamespace(
        wait=lambda streams, num_returns: (streams[:1], streams[1:]),
        get=lambda found: found,
        exceptions=SimpleNamespace(RayError=RuntimeError),
    )
    pool = RayWorkers(ray, 1, WorkerSetup(make=lambda cache, options: None, folder=tmp_path / "files"))
    task = byte_task("one", makes=("asked",))
    pool._workers.append(_Worker(None, iter([said]), ready=True, task=task))
    assert pool.next(lambda *_: None) == PoolResult(task, (b"done",))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["asked"]


def timeless(records: list[Record]) -> list[Record]:
    return [record.model_copy(update={"seconds": 0.0}) for record in records]


def test_records_are_those_of_the_local_backend_and_a_killed_worker_loses_nothing(
    cluster: Cluster, toy_plan: Plans, toys: ModuleType, tmp_path: Path
) -> None:
    log, killed = tmp_path / "log", list[int]()
    plan = toy_plan(
        attacks={
            "slow one": {"trouble": "slow", "log": str(log), "blur": 0.1},
            "slow two": {"trouble": "slow", "log": str(log), "blur": 0.2},
            "refuses": {"trouble": "refuse"},
        },
        defences=(toys.ToyNoise(),),
    )

    def kill(step: Step) -> None:
        if not killed and log.exists():
            killed.append(int(log.read_text().split()[-1]))
            os.kill(killed[0], signal.SIGKILL)

    records = running.run(plan, tmp_path / "ray", workers=cluster, progress=kill)
    assert killed
    assert str(os.getpid()) not in log.read_text()
    attacks = {"slow one": {"trouble": "slow", "log": str(log), "blur": 0.1}}
    here = running.run(toy_plan(attacks=attacks, defences=(toys.ToyNoise(),)), tmp_path / "here")
    wanted = {record.cell.key: record for record in timeless(here)}
    found = {record.cell.key: record for record in timeless(records)}
    assert wanted.items() <= found.items()
    others = [record for record in records if record.cell.label != "refuses"]
    assert {record.status for record in others} == {Status.DONE}
    names = [{path.name for path in (tmp_path / who / TRAINING_FOLDER).iterdir()} for who in ("ray", "here")]
    assert names[0] == names[1] != set()
    for name in names[0]:
        assert (tmp_path / "ray" / TRAINING_FOLDER / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.long
def test_a_real_audit_and_a_search_give_the_same_bytes(cluster: Cluster, tmp_path: Path) -> None:
    spec = {
        "scenario": {"data": "digits", "model": "mlp", "rounds": 2},
        "defences": [{"kind": "gaussian_noise", "std": 0.01}],
        "attacks": ["analytic"],
        "grid": {"victims": 2},
    }
    ways: dict[str, Any] = {"ray": cluster, "here": 1}
    records = {name: running.run(plans.parse_plan(spec), tmp_path / name, workers=who) for name, who in ways.items()}
    assert timeless(records["ray"]) == timeless(records["here"])
    assert {record.status for record in records["ray"]} == {Status.DONE}
    settings = Search(data=Digits(), model=MLP(hidden=(8,)), images=16, candidates=6, epochs=1, threshold=2.0)
    found = {name: search(settings, tmp_path / f"{name}.toml", who) for name, who in ways.items()}
    assert found["ray"] == found["here"]
    assert (tmp_path / "ray.toml").read_bytes() == (tmp_path / "here.toml").read_bytes()


def test_nothing_listens_beyond_loopback(cluster: Cluster, toy_plan: Plans, tmp_path: Path) -> None:
    running.run(toy_plan(), tmp_path / "out", workers=cluster)
    found = {address for address, _ in listening({pid for pid, _ in descendants(os.getpid())} | {os.getpid()})}
    assert cluster._ray.util.get_node_ip_address() == LOOPBACK
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


STRANGER = """
import json, os, sys
import grpc, ray, ray.dag
import encodings.idna, http.client, urllib.error, urllib.request
from grpc import RpcError
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
# It imports more, which another user may not be able to read.
grpc.insecure_channel("127.0.0.1:1").close()
os.setgroups([]), os.setgid(65534), os.setuid(65534)
found = {}
for port in sys.argv[2:]:
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    for method in (
        "NodeInfoGcsService/RegisterNode", "JobInfoGcsService/AddJob", "ActorInfoGcsService/RegisterActor",
        "NodeManagerService/RequestWorkerLease", "ObjectManagerService/Push", "CoreWorkerService/PushTask",
    ):
        try:
            channel.unary_unary(f"/ray.rpc.{method}")(b"", timeout=10)
            found.setdefault(port, set()).add("ANSWERED")
        except RpcError as error:
            found.setdefault(port, set()).add(error.code().name)
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/get_or_create_runtime_env", b"", timeout=10)
        found[port].add("ANSWERED")
    except urllib.error.HTTPError as error:
        found[port].add(str(error.code))
    except (http.client.HTTPException, OSError):
        pass
print(json.dumps({port: sorted(said) for port, said in found.items()}))
sys.stdout.flush()
# What a driver and a node that join do first.
try:
    GcsClient(address=sys.argv[1]).get_all_node_info()
    print("joined")
except AuthenticationError:
    print("refused")
"""


def test_another_user_who_knows_the_ports_can_neither_submit_nor_join(
    cluster: Cluster, toy_plan: Plans, tmp_path: Path
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    running.run(toy_plan(), tmp_path / "out", workers=cluster)
    pids = {pid for pid, _ in descendants(os.getpid())} | {os.getpid()}
    opened = listening(pids) - PYTESTS_OWN
    address = cluster.start().get_runtime_context().gcs_address
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    words = [sys.executable, "-W", "ignore", "-c", STRANGER, address, *(str(port) for _, port in opened)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd="/")
    assert done.stdout, done.stderr
    said, *joined = done.stdout.splitlines()
    found = json.loads(said)
    # Workers of the audit may have ended meanwhile, and their ports with them.
    stayed = listening(pids) & opened
    assert len(stayed) > 3
    for answers in (found[str(port)] for _, port in stayed):
        assert {"UNAUTHENTICATED", "401"} & set(answers)
        assert set(answers) <= {"UNAUTHENTICATED", "UNIMPLEMENTED", "UNAVAILABLE", "401"}
    assert joined == ["refused"], done.stderr
    token = Path(os.environ["RAY_AUTH_TOKEN_PATH"]).read_bytes()
    for pid in pids:
        with contextlib.suppress(OSError):
            assert token not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_worker_that_is_killed_while_it_starts_is_started_again(
    cluster: Cluster, tmp_path: Path, byte_task: Any
) -> None:
    log = tmp_path / "log"

    # Here, because Ray carries a function as it is that cannot be imported.
    def mortal(cache: object, options: Any) -> Any:
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if len(log.read_text().split()) <= 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return SimpleNamespace(answer=lambda content, progress: [content])

    task = byte_task("one", b"asked")
    with cluster(WorkerSetup(mortal, tmp_path)) as pool:
        pool.submit(task)
        assert pool.next(lambda *_: None) == PoolResult(task, (b"asked",))
    assert len(set(log.read_text().split())) == 3


def test_a_worker_with_other_data_or_code_says_so(cluster: Cluster, toy_plan: Plans, tmp_path: Path) -> None:
    cell = toy_plan().cells()[0]
    own = TrainingCache(tmp_path).fingerprint(cell)
    with cluster(audit_setup(tmp_path)) as pool:
        pool.submit(AuditTask(cell, Fingerprint({**own.parts, "the data": "others"})))
        result: PoolResult[AuditTask, AuditResult] = pool.next(lambda *_: None)
    assert result.value.reason == ELSEWHERE.format(what="the data")


def test_a_training_is_told_of_while_it_lasts_and_comes_back_as_a_file(
    cluster: Cluster, toy_plan: Plans, tmp_path: Path
) -> None:
    steps: list[Step] = []
    plan = toy_plan(scenario={"rounds": 4, "pause": 0.2})
    running.run(plan, tmp_path / "out", workers=cluster, progress=steps.append)
    assert [step.text for step in steps[:2]] == ["training with none", "training with none, 1 of 4"]
    assert TrainingCache(tmp_path / "out" / TRAINING_FOLDER).has(TrainingCache(tmp_path).spec(plan.cells()[0]))
