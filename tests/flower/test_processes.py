"""Starting and stopping programs; no Flower is started here."""

import errno
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.data import Digits
from leaktight.flower import launcher, namespace, processes, watchdog
from leaktight.flower.app import FAILURE_FILE, PROGRESS_FILE
from leaktight.flower.deployment import STARTS, Deployment, Keys, load_keys
from leaktight.flower.launcher import open_programs, run_training, write_profile, write_project
from leaktight.flower.processes import Programs, free_port, last_line
from leaktight.learning.federated import Federated
from leaktight.learning.joint import CURVE_FILE, MODEL_FILE, JointTraining
from leaktight.models import MLP

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(100)
"""


@pytest.fixture
def family(tmp_path):
    """Return a program that starts another one in a session of its own, by a name beside Python's."""
    script = tmp_path / "family"
    script.write_text(f"#!{sys.executable}\n{FAMILY}")
    script.chmod(0o700)
    return str(script)


def child_of(programs, name):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        said = programs.log(name).read_text().split()
        if said:
            return int(said[0])
        time.sleep(0.05)
    raise AssertionError("no child")


def training():
    return JointTraining(scenario=Federated(data=Digits(), model=MLP(hidden=(4,)), rounds=2, participants=2), seed=2)


def test_what_was_started_is_ended_with_all_below_it(tmp_path, family):
    with pytest.raises(KeyboardInterrupt), Programs(tmp_path / "files", tmp_path / "logs") as programs:
        started = programs.start("one", family)
        child = child_of(programs, "one")
        assert {started.pid, child} <= watchdog.parents().keys()
        raise KeyboardInterrupt
    assert not {started.pid, child} & watchdog.parents().keys()
    assert (tmp_path / "logs" / "one.log").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "files").exists()


def test_it_is_ended_even_if_whoever_started_it_is_killed(tmp_path, family):
    code = f"""
import sys, time
sys.path.insert(0, "")
from pathlib import Path
import warnings
warnings.simplefilter("ignore")
from leaktight.flower.processes import Programs
programs = Programs(Path({str(tmp_path / "files")!r}), Path({str(tmp_path / "logs")!r}))
print(programs.start("one", {family!r}).pid, flush=True)
time.sleep(100)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    started = int(owner.stdout.readline())
    owner.stdout.close()
    until = time.monotonic() + 60
    while not (tmp_path / "logs" / "one.log").read_text() and time.monotonic() < until:
        time.sleep(0.05)
    child = int((tmp_path / "logs" / "one.log").read_text())
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    until = time.monotonic() + 30
    while (tmp_path / "files").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not {started, child} & watchdog.parents().keys()
    assert not (tmp_path / "files").exists()


@pytest.mark.parametrize("trust", [False, True], ids=["in a network of its own", "by a mark in the environment"])
def test_what_lost_its_parent_is_ended_too(tmp_path, family, trust):
    with Programs(tmp_path / "files", tmp_path / "logs", trust) as programs:
        started = programs.start("one", family)
        child = child_of(programs, "one")
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
        assert child in watchdog.parents()
    assert child not in watchdog.parents()


def test_a_stranger_with_the_number_of_a_program_that_ended_is_left_alone(tmp_path, family):
    with Programs(tmp_path / "files", tmp_path / "logs") as programs:
        pipe, lines = programs._watchdog.stdin, []
        programs._watchdog.stdin = SimpleNamespace(
            write=lambda line: lines.append(line) or pipe.write(line), flush=pipe.flush, close=pipe.close
        )
        ended, stays = programs.start("one", family), programs.start("two", family)
        child = child_of(programs, "two")
        watchdog.end([ended.pid])
        ended.wait()
    assert lines == [b"%d\n" % ended.pid, b"%d %d\n" % (ended.pid, stays.pid), b"%d\n" % stays.pid]
    assert not {stays.pid, child} & watchdog.parents().keys()


def test_the_watchdog_ends_what_it_was_told_of_last(monkeypatch, tmp_path):
    ended = []
    monkeypatch.setattr(watchdog, "end", lambda pids, mark, network: ended.extend(pids))
    for said in ("1\n1 2\n2\n", "1\n\n", ""):
        folder = tmp_path / "private"
        folder.mkdir()
        monkeypatch.setattr(sys, "stdin", io.StringIO(said))
        watchdog.main(str(folder))
        assert not folder.exists()
    assert ended == [2]


def test_everything_that_tells_others_is_off(tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "1")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")
    script = tmp_path / "tell"
    script.write_text(f"#!{sys.executable}\nimport json, os\nprint(json.dumps(dict(os.environ)))\n")
    script.chmod(0o700)
    with Programs(tmp_path / "files", tmp_path / "logs") as programs:
        environment = json.loads(programs.run(str(script)))
    off = ("FLWR_TELEMETRY_ENABLED", "RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")
    assert [environment[name] for name in off] == ["0", "0", "0"]
    assert environment["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert Path(environment["FLWR_HOME"]).parent == tmp_path / "files"
    assert environment["PATH"].split(os.pathsep)[:2] == [
        str(tmp_path / "files" / "bin"),
        str(Path(sys.executable).parent),
    ]
    assert environment["RAY_AUTH_MODE"] == "token"


def test_a_program_that_fails_is_one_sentence(tmp_path):
    script = tmp_path / "fail"
    script.write_text(f"#!{sys.executable}\nraise SystemExit('ERROR: The key is not known.')\n")
    script.chmod(0o700)
    with Programs(tmp_path / "files", tmp_path / "logs") as programs:
        with pytest.raises(LeaktightError, match=r"fail register` failed: ERROR: The key is not known.$"):
            programs.run(str(script), "register")
        programs.start("superlink", str(script))
        with pytest.raises(LeaktightError, match=r"Flower's superlink did not start: ERROR: The key is not known.$"):
            programs.wait_for("superlink", free_port())
    assert last_line("\n ---\n") == "it said nothing"


def test_the_project_is_what_flower_reads(tmp_path):
    project = tomllib.loads(
        (write_project(tmp_path / "p", training(), tmp_path / "o u't", 7) / "pyproject.toml").read_text()
    )
    config = project["tool"]["flwr"]["app"]["config"]
    assert JointTraining.model_validate(json.loads(config["training"])) == training()
    assert (config["out"], config["patience"]) == (str(tmp_path / "o u't"), 7.0)
    write_profile(tmp_path, "127.0.0.1:9", tmp_path / "authority.pem")
    held = tomllib.loads((tmp_path / "config.toml").read_text())["superlink"]
    assert held[held["default"]] == {"address": "127.0.0.1:9", "root-certificates": str(tmp_path / "authority.pem")}
    write_profile(tmp_path, "127.0.0.1:9", None)
    assert tomllib.loads((tmp_path / "config.toml").read_text())["superlink"]["leaktight"]["insecure"] is True


class Ended:
    """A program that has ended, or ends after some looks at it."""

    pid, returncode = 0, 0

    def __init__(self, looks=0):
        self.looks = looks

    def poll(self):
        self.looks -= 1
        return 0 if self.looks < 0 else None


@pytest.fixture
def programs(tmp_path, monkeypatch):
    monkeypatch.setattr(launcher, "_PAUSE", 0.0)
    with open_programs(tmp_path / "out") as made:
        made._started[launcher.SUPERLINK] = Ended(looks=1000)
        yield made
        del made._started[launcher.SUPERLINK]


def test_a_training_is_followed_to_its_model(programs, tmp_path):
    out, rounds, tended = tmp_path / "out", [], []
    programs.start = lambda *words: Ended(2)

    def tend():
        tended.append(1)
        (out / PROGRESS_FILE).write_text(
            json.dumps({"played": len(tended), "utility": [{"name": "accuracy", "value": 0.5}]})
        )
        (out / CURVE_FILE).write_text("{}")

    run_training(programs, training(), out, rounds.append, tend=tend)
    assert [(played.played, played.readings[0].value) for played in rounds] == [(1, 0.5), (2, 0.5)]


def test_a_training_that_failed_says_why(programs, tmp_path):
    out = tmp_path / "out"
    programs.start = lambda *words: Ended(10)
    (out / FAILURE_FILE).write_text('{"reason": "client-1 is broken."}')
    with pytest.raises(LeaktightError, match=r"^client-1 is broken.$"):
        run_training(programs, training(), out)
    (out / FAILURE_FILE).unlink()
    programs.start = lambda *words: Ended()
    programs.log("run").write_text("ERROR: no federation\n")
    with pytest.raises(
        LeaktightError, match=r"ended without a model \(ERROR: no federation\). See the logs in `.*out/flower-logs`"
    ):
        run_training(programs, training(), out)


def test_a_superlink_that_ends_or_loses_its_app_ends_the_training(programs, tmp_path):
    programs.start = lambda *words: Ended(10)
    (programs.folder / "ends").mkdir(exist_ok=True)
    note = programs.folder / "ends" / launcher.SUPERLINK
    note.write_text("Flower's flwr-serverapp ended (signal SIGKILL)")
    log = tmp_path / "out" / "flower-logs" / "superlink.log"
    with pytest.raises(
        LeaktightError, match=rf"^Flower's flwr-serverapp ended \(signal SIGKILL\) in .*; its log is `{log}`.$"
    ):
        run_training(programs, training(), tmp_path / "out")
    note.unlink()
    programs._started[launcher.SUPERLINK] = Ended()
    with pytest.raises(LeaktightError, match=rf"^Flower's superlink ended \(exit code 0\) in .*; its log is `{log}`.$"):
        run_training(programs, training(), tmp_path / "out")


def test_logs_stay_where_a_training_failed_and_go_where_it_did_not(tmp_path):
    log = tmp_path / "flower-logs" / "one.log"
    with pytest.raises(LeaktightError), open_programs(tmp_path) as programs:
        programs.log("one").write_text("said")
        raise LeaktightError("It failed.")
    assert log.read_text() == "said"
    assert log.parent.stat().st_mode & 0o777 == 0o700
    with open_programs(tmp_path) as programs:
        assert not log.exists()
        programs.log("one").write_text("said")
    assert not log.parent.exists()


def test_where_there_can_be_no_network_of_our_own_nothing_starts_beside_other_users(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_hold_network", lambda: None)
    monkeypatch.setattr("leaktight.core.local_users.other_users", lambda: ["ann", "bob"])
    with (
        pytest.raises(
            InvalidValue, match=r"would be open to other users of this machine \(ann, bob\).*`--trust-local-users`.$"
        ),
        open_programs(tmp_path),
    ):
        pass
    with open_programs(tmp_path, trust=True) as programs:
        assert programs.run("python", "-c", "print('here')") == "here\n"
    monkeypatch.setattr("leaktight.core.local_users.other_users", list)
    with open_programs(tmp_path) as programs:
        started = programs.start("one", "python", "-m", "http.server", "--bind", "127.0.0.1", str(port := free_port()))
        programs.wait_for("one", port)
        assert namespace.namespace_of(started.pid) == namespace.namespace_of(os.getpid())


def test_the_ports_of_programs_are_in_a_network_of_their_own(programs):
    if programs._holder is None:
        pytest.skip("no network namespace is permitted here")
    port = free_port()
    started = programs.start("one", "python", "-m", "http.server", "--bind", "127.0.0.1", str(port))
    programs.wait_for("one", port)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED
    assert namespace.listens(started.pid, port)
    assert namespace.namespace_of(started.pid) != namespace.namespace_of(os.getpid())
    code = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('reached')"
    assert programs.run("python", "-c", code) == "reached\n"


def test_old_results_are_not_taken_for_new_ones(tmp_path):
    for name in (MODEL_FILE, CURVE_FILE, FAILURE_FILE, PROGRESS_FILE):
        (tmp_path / name).write_text("{}")
    with open_programs(tmp_path) as programs:
        assert [path.name for path in tmp_path.iterdir()] == ["flower-logs"]
        place = programs.folder
        assert place.stat().st_mode & 0o777 == 0o700
    assert not place.exists()


def test_keys_are_made_once(tmp_path):
    pytest.importorskip("cryptography")
    first, more = load_keys(tmp_path, 1), load_keys(tmp_path, 2)
    assert first.nodes["client-0"] == more.nodes["client-0"]
    assert list(more.nodes) == ["client-0", "client-1"]
    for path in (first.superlink.authority, first.superlink.certificate, first.superlink.key, *more.nodes["client-1"]):
        assert path.is_file()
    assert first.superlink == more.superlink


def test_a_node_that_ends_is_started_again_but_not_for_ever(programs, tmp_path, monkeypatch):
    monkeypatch.setattr("leaktight.flower.deployment.start_superlink", lambda *_, **__: "127.0.0.1:9")
    monkeypatch.setattr("leaktight.flower.deployment.PAUSE", 0.0)
    started, registered = [], []
    programs.start = lambda name, *words: started.append(words) or Ended()
    programs.run = lambda *words: registered.append(words)
    keys = load_keys(tmp_path / "keys", 1)
    deployment = Deployment(programs, Keys(keys.superlink, keys.nodes))
    deployment.start_node(0)
    programs.log("client-0").write_text("[code: 2004] Failed to activate SuperNode.\n")
    with pytest.raises(
        LeaktightError,
        match=rf"client-0 ended {STARTS} times: \[code: 2004\] Failed to activate SuperNode. Its log is `",
    ):
        while True:
            deployment.tend()
    assert len(started) == STARTS
    assert registered == [("flwr", "supernode", "register", str(keys.nodes["client-0"][1]), "leaktight")]
    assert "--node-config" in started[0]
