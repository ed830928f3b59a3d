"""Training runs on a real Flower: its simulation, and a deployment of processes on loopback with TLS and authentication."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from leaktight.core.certificates import make_node_key
from leaktight.core.defence import Chain
from leaktight.core.errors import LeaktightError
from leaktight.core.temporary import PREFIX
from leaktight.data import Digits
from leaktight.defences import GaussianNoise, TopK
from leaktight.flower import namespace, watchdog
from leaktight.flower.deployment import Deployment, load_keys
from leaktight.flower.launcher import SUPERLINK, open_programs, run_training
from leaktight.flower.simulation import federation, start_simulation
from leaktight.learning.federated import Federated
from leaktight.learning.joint import MODEL_FILE, JointTraining
from leaktight.learning.protocol import FedAvg
from leaktight.models import MLP

# A deployed message takes seconds, and Flower believes for some time that a killed node is there.
pytestmark = [pytest.mark.flower, pytest.mark.timeout(900)]

PLAN = """
[scenario]
rounds = 50
participants = 2
data = {kind = "digits"}
model = {kind = "mlp", hidden = [4]}
"""


NOBODY = 65534
SOON = 60.0


NOISE = Chain(links=(TopK(), GaussianNoise(std=0.01)))
"""What a simulation repeats from the agreed seed, and a deployed node draws in secret."""


def training(rounds=2, defence=NOISE):
    scenario = Federated(
        data=Digits(), model=MLP(hidden=(8,)), rounds=rounds, participants=2, protocol=FedAvg(local_steps=2)
    )
    return JointTraining(scenario=scenario, defence=defence, seed=3)


def right(out, rounds=2, defence=NOISE):
    wanted, model = training(rounds, defence), load_file(out / MODEL_FILE)
    parameters = wanted.lead(wanted.parties()).parameters
    return model.keys() == parameters.keys() and all(
        torch.allclose(model[n], t, rtol=0, atol=1e-6) for n, t in parameters.items()
    )


def listening(pid):
    """Return the addresses, in hexadecimal, and ports on which somebody listens in the network of a process."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    sockets = [row[1].rpartition(":") for row in rows if row[3] == "0A"]
    return {(address, int(port, 16)) for address, _, port in sockets}


def killed(pids, words):
    """Kill the first process in whose command line these words are; return whether there was one."""
    for pid in pids:
        with contextlib.suppress(OSError):
            if words in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                return True
    return False


STRANGER = """
import errno, os, socket, sys
sys.path.insert(0, sys.argv[1])
import encodings.idna
import namespace
os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
for port in map(int, sys.argv[4:]):
    for address in ("127.0.0.1", "::1"):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as one:
            if one.connect_ex((address, port)) == 0:
                print("reached", port)
try:
    namespace.join(int(sys.argv[3]))
    print("joined")
except OSError as error:
    print(errno.errorcode[error.errno])
try:
    open("/proc/" + sys.argv[3] + "/environ").read()
    print("read")
except PermissionError:
    pass
"""


def stranger(pid, ports):
    """Return what a process of another user says that knows the ports and whose they are; nothing if there can be no such process."""
    if os.getuid() != 0:
        return []
    words = [Path(namespace.__file__).parent, NOBODY, pid, *sorted(ports)]
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, *map(str, words)], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def secrets_shown(pids, folder):
    """Return the tokens and keys in a folder that are in the command line of a process."""
    held = [
        path
        for name in ("tokens", "ray-token")
        for path in [folder / name, *folder.glob(f"{name}/*")]
        if path.is_file()
    ]
    secrets = [path.read_bytes().strip() for path in held]
    assert len(secrets) > 1
    shown = b""
    for pid in pids:
        with contextlib.suppress(OSError):
            shown += Path(f"/proc/{pid}/cmdline").read_bytes()
    return [secret for secret in secrets if secret in shown]


def below(root):
    """Return the processes below one that live, each with when it was started, because numbers are used again."""
    return living(watchdog.with_descendants([root]) - {root})


def living(pids):
    alive = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            alive |= {(pid, fields[19])} if fields[0] != "Z" else set()
    return alive


def left(seen):
    return seen & living(pid for pid, _ in seen)


@pytest.fixture(scope="module")
def heard():
    """Return what strangers said, by the engine that they tried: the clusters that they need are there for other questions, too."""
    return {}


@pytest.fixture(scope="module")
def trust():
    """Return whether programs must do without a network of their own, because this machine permits none."""
    words = [sys.executable, namespace.__file__, "hold"]
    return not subprocess.run(words, input="", capture_output=True, text=True, check=True).stdout.endswith("net\n")


class Watch:
    """Looks, each time it is called, at what runs below this process, and kills what it is told to, once."""

    def __init__(self, before, words=b"", when=lambda: True):
        self.before, self.words, self.when = before, words, when
        self.seen, self.killed = set(), 0.0

    def __call__(self, *_):
        now = below(os.getpid()) - self.before
        self.seen |= now
        if self.words and not self.killed and self.when() and killed((pid for pid, _ in now), self.words):
            self.killed = time.monotonic()


@pytest.mark.long
def test_a_simulation_replaces_a_lost_actor_is_closed_to_others_and_ends_with_its_superlink(tmp_path, heard, trust):
    """One SuperLink serves every question here, because each start takes seconds."""
    out, rounds, before = tmp_path / "out", [], below(os.getpid())
    with pytest.raises(LeaktightError) as error, open_programs(out, trust) as programs:
        actor = Watch(before, b"ray::ClientAppActor", lambda: bool(rounds))
        start_simulation(programs)
        own = programs._started[SUPERLINK].pid
        asked = []

        def after(played):
            if not rounds:
                assert not secrets_shown([pid for pid, _ in actor.seen], programs.folder)
                asked.append(listening(own))
            rounds.append(played.played)

        words = ("--federation-config", federation(training(8), workers=2))
        run_training(programs, training(8), out, after, *words, tend=actor)
        assert actor.killed
        assert time.monotonic() - actor.killed < SOON
        assert rounds[-1] == 8
        assert right(out, 8)
        heard["simulation"] = asked[0], stranger(own, [port for _, port in asked[0]])

        end = Watch(before, b"flower-superlink", lambda: any(b"ray::ClientApp" in title(pid) for pid, _ in end.seen))
        (out / MODEL_FILE).unlink()
        run_training(programs, training(200), out, None, *words, tend=end)
    assert time.monotonic() - end.killed < SOON
    assert (
        "Flower's superlink ended (signal SIGKILL) in the middle of the training run. Train again; its log is"
        in str(error.value)
    )
    assert (out / "flower-logs" / "superlink.log").read_text()
    assert str(out / "flower-logs" / "superlink.log") in str(error.value)
    assert len(end.seen) > 10
    assert not left(actor.seen | end.seen)
    assert not programs.folder.exists()


def title(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@pytest.mark.long
def test_a_deployment_refuses_a_wrong_key_survives_deaths_is_closed_to_others_and_ends_with_its_superlink(
    tmp_path, heard, trust
):
    out, before = tmp_path / "out", below(os.getpid())
    with pytest.raises(LeaktightError) as error, open_programs(out, trust) as programs:
        deployment = Deployment(programs, load_keys(tmp_path / "keys", 2))
        impostor = deployment.start_node(1, make_node_key(tmp_path, "stranger")[0])
        assert impostor.wait() != 0
        assert "Failed to activate SuperNode" in programs.last_message("client-1")
        deployment.start_node(0)
        node = deployment.start_node(1)
        asked, went_on = [], []

        def received(what):
            return programs.log("client-1").read_text().count(f"Receiving: {what}")

        watch = Watch(before)
        app = Watch(before)

        def tend():
            watch()
            if not watch.killed and received("train") == 1:
                watch.killed = time.monotonic()
                asked.append(listening(node.pid))
                assert not secrets_shown([pid for pid, _ in watch.seen], programs.folder)
                os.kill(node.pid, signal.SIGKILL)
            if watch.killed and not went_on and received("train") > 1:
                went_on.append(time.monotonic())
            own = [pid for pid, _ in below(deployment._running[1].pid)]
            if went_on and not app.killed and killed(own, b"flwr-clientapp"):
                app.killed = time.monotonic()
            deployment.tend()

        run_training(programs, training(3, TopK()), out, tend=tend)
        assert right(out, 3, TopK())
        assert went_on[0] - watch.killed < SOON
        assert app.killed
        heard["deployment"] = asked[0], stranger(programs._started[SUPERLINK].pid, [port for _, port in asked[0]])

        met = received("query")
        end = Watch(before, b"flower-superlink", lambda: received("query") > met)
        (out / MODEL_FILE).unlink()
        run_training(programs, training(3), out, tend=lambda: (end(), deployment.tend()))
    assert time.monotonic() - end.killed < SOON
    assert "Flower's superlink ended (signal SIGKILL)" in str(error.value)
    assert len(end.seen) > 3
    assert not left(watch.seen | end.seen)
    assert not programs.folder.exists()


@pytest.mark.long
@pytest.mark.parametrize(("engine", "ports"), [("simulation", 4), ("deployment", 3)])
def test_another_user_who_knows_the_ports_can_neither_submit_nor_join(heard, trust, engine, ports):
    if trust:
        pytest.skip("no network namespace is permitted here")
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    if engine not in heard:
        pytest.skip(f"the test that starts a {engine} did not come so far")
    listened, said = heard[engine]
    assert {address for address, _ in listened} <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert len(listened) >= ports
    # It reached none, may not enter their network, and reads nobody's environment.
    assert said == ["EACCES"]


@pytest.mark.long
def test_told_to_trust_them_others_reach_a_simulation(tmp_path):
    """The counterpart of what is closed to others: without a network of its own, they do reach it."""
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    with open_programs(tmp_path, trust=True) as programs:
        start_simulation(programs)
        own = programs._started[SUPERLINK].pid
        port = int(re.search(r"on 127.0.0.1:(\d+)", programs.log(SUPERLINK).read_text())[1])
        said = stranger(own, [port])
        run_training(programs, training(), tmp_path, None, "--federation-config", federation(training(), workers=2))
        assert right(tmp_path)
    assert said[:2] == ["reached", str(port)]


@pytest.fixture
def place():
    """Return an empty folder with a short path: Ray's sockets are in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.long
@pytest.mark.parametrize("what", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_a_command_that_is_killed_leaves_nothing_behind(tmp_path, place, launch, what):
    (tmp_path / "plan.toml").write_text(PLAN)
    code = "import sys, warnings; warnings.simplefilter('ignore'); from leaktight.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "train", "plan.toml", "--backend", "flower"]
    environment = {**os.environ, "TMPDIR": str(place)}
    command = launch(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment)
    until = time.monotonic() + 300
    while not (tmp_path / "leaktight-training" / "progress.json").exists() and time.monotonic() < until:
        assert command.poll() is None
        time.sleep(0.2)
    seen = below(command.pid)
    assert len(seen) > 10
    assert list(place.glob(f"{PREFIX}*"))
    command.send_signal(what)
    said = command.communicate()[1]
    if what == signal.SIGTERM:
        # A first round may have ended by then, which a line says.
        [*_, last] = said.splitlines()
        assert (command.returncode, last) == (143, "Terminated: what was started is stopped, and there is no model.")
        assert "Traceback" not in said
        assert not left(seen)
    until = time.monotonic() + SOON
    while (left(seen) or list(place.glob(f"{PREFIX}*"))) and time.monotonic() < until:
        time.sleep(0.5)
    assert not left(seen)
    assert not list(place.glob(f"{PREFIX}*"))


@pytest.mark.long
def test_ctrl_c_stops_what_was_started(launch, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    code = "import sys, warnings; warnings.simplefilter('ignore'); from leaktight.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "train", "plan.toml", "--backend", "flower"]
    command = launch(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not (tmp_path / "leaktight-training" / "progress.json").exists() and time.monotonic() < until:
        assert command.poll() is None
        time.sleep(0.2)
    seen = below(command.pid)
    assert len(seen) > 3
    command.send_signal(signal.SIGINT)
    assert "Interrupted: what was started is stopped" in command.communicate()[1]
    assert command.returncode == 130
    assert not left(seen)
