"""Trainings on a real Flower: its simulation, and a deployment of processes on loopback with TLS and authentication."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from leaktight.core.certificates import make_node_key
from leaktight.data import Digits
from leaktight.defences import TopK
from leaktight.flower import guard
from leaktight.flower.deploy import Deployment, keys_in
from leaktight.flower.engine import follow, workplace
from leaktight.flower.simulation import simulate
from leaktight.learning.federated import Federated
from leaktight.learning.joint import MODEL_FILE, JointTraining
from leaktight.learning.protocol import FedAvg
from leaktight.models import MLP

# A deployed message takes seconds, and Flower believes for a minute that a killed node is there.
pytestmark = [pytest.mark.flower, pytest.mark.timeout(900)]

PLAN = """
[scenario]
rounds = 50
participants = 2
data = {kind = "digits"}
model = {kind = "mlp", hidden = [4]}
"""


def training():
    scenario = Federated(data=Digits(), model=MLP(hidden=(8,)), rounds=2, participants=2, protocol=FedAvg(local_steps=2))
    return JointTraining(scenario=scenario, defence=TopK(), seed=3)


def right(out):
    wanted, found = training().lead(training().parties()).parameters, load_file(out / MODEL_FILE)
    return found.keys() == wanted.keys() and all(torch.allclose(found[n], t, rtol=0, atol=1e-6) for n, t in wanted.items())


def listening(pids):
    """Return the addresses, in hexadecimal, on which processes listen."""
    inodes = set()
    for link in (link for pid in pids for link in Path(f"/proc/{pid}/fd").glob("*")):
        with contextlib.suppress(OSError):
            inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def below(root):
    """Return the processes below one that live, each with when it was started, because numbers are used again."""
    return living(guard.below([root]) - {root})


def living(pids):
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found |= {(pid, fields[19])} if fields[0] != "Z" else set()
    return found


def left(seen):
    return seen & living(pid for pid, _ in seen)


def test_the_simulation_trains_the_same_model_and_leaves_nothing_running(tmp_path):
    told, seen, heard, before = [], set(), set(), below(os.getpid())

    def after(played):
        told.append(played.played)
        seen.update(below(os.getpid()) - before)
        heard.update(listening(pid for pid, _ in seen))

    simulate(training(), tmp_path, after, workers=2)
    assert right(tmp_path)
    assert told[-1] == 2
    assert "0100007F" in heard
    assert heard <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert len(seen) > 3
    assert not left(seen)


def test_a_deployment_refuses_a_wrong_key_and_survives_the_death_of_a_node(tmp_path):
    killed, seen, before = [], set(), below(os.getpid())
    with workplace(tmp_path / "out") as programs:
        deployment = Deployment(programs, keys_in(tmp_path / "keys", 2))
        stranger = deployment.node(1, make_node_key(tmp_path, "stranger")[0])
        assert stranger.wait() != 0
        assert "Failed to activate SuperNode" in programs.said("client-1")
        deployment.node(0)
        node = deployment.node(1)

        def tend():
            if not killed and programs.log("client-1").read_text().count("Receiving: train") == 1:
                killed.append(node.pid)
                os.kill(node.pid, signal.SIGKILL)
            deployment.tend()

        def after(played):
            seen.update(below(os.getpid()) - before)

        follow(programs, training(), tmp_path / "out", after, tend=tend)
    assert killed
    assert right(tmp_path / "out")
    assert len(seen) > 3
    assert not left(seen)


def test_ctrl_c_stops_what_was_started(launch, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    code = "import sys, warnings; warnings.simplefilter('ignore'); from leaktight.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "train", "plan.toml", "--engine", "flower"]
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
