"""The example app runs as its README says, from `flwr run` to a report; its two sides also run by hand."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from flwr.app import ArrayRecord, ConfigRecord
from flwr.serverapp.strategy import FedAvg

from leaktight.captures import read_captures
from leaktight.core.record import Status
from leaktight.findings.summary import summarise
from leaktight.flower import TELEMETRY_OFF, record
from leaktight.models import Factory
from leaktight.plans import capture_plan
from leaktight.plans.captured import cheapest
from leaktight.running import Store, run

pytestmark = [pytest.mark.flower, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "flower-quickstart"
NODES = 6
CONFIG = {"batch-size": 4, "local-steps": 1, "defence": "none", "truth-to": ""}


def commands(page: Path) -> list[list[str]]:
    """Return the commands of each console block of a page."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [[line.removeprefix("$ ") for line in block.splitlines()] for block in blocks]


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture(scope="module")
def shell(end_all, tmp_path_factory):
    """Return what runs commands in a copy of the example, with a Flower of its own; nothing of it is left afterwards."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "app")
    home = folder / "home"
    environment = {
        **os.environ,
        **TELEMETRY_OFF,
        "FLWR_HOME": str(home),
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": free_port(),
        "FLWR_LOCAL_CONTROL_API_PORT": free_port(),
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }

    def call(lines: list[str]) -> str:
        script = "\n".join(lines)
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=folder / "app",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=800,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n\n{done.stdout}"
        return done.stdout

    call.folder = folder / "app"
    yield call
    end_all(home)


@pytest.mark.long
def test_the_commands_of_the_readme_lead_from_a_run_to_a_report_that_grades_a_leak(shell):
    [undefended, noise] = commands(EXAMPLE / "README.md")
    said = shell(undefended)
    assert "Received 4 results and 0 failures" in said
    assert "The app does not say how its updates are made" not in said
    captures = read_captures(shell.folder / "recorded")
    assert len(captures) == 8
    manifest = captures[0].manifest
    assert (manifest.optimiser, manifest.learning_rate, manifest.momentum, manifest.weight_decay) == ("sgd", 0.1, 0, 0)
    assert (manifest.local_steps, manifest.batch_size, manifest.examples, manifest.mean) == (1, 4, 4, ())
    assert said.index("First answer, by label_reading: As captured: leaks.") < said.index("Verdict")
    with Store.read(shell.folder / "audit") as store:
        records = store.records()
    sentences = [one for one in summarise(records).verdict if one.startswith("As captured")]
    assert sentences
    assert all(sentence.startswith("As captured: leaks.") for sentence in sentences)
    assert "data:image/png" in (shell.folder / "audit" / "report.html").read_text()
    # The defended run takes the same roads; its audit is the reader's.
    flower, _ = noise
    said = shell([undefended[0], flower])
    assert re.search(r"gaussian_noise\(clip=0.05, std=0.02\): noise norm [\d.]+ beside an update norm of [\d.]+", said)
    assert len(read_captures(shell.folder / "recorded-noise")) == 8


def test_the_page_on_flower_shows_the_commands_of_the_readme():
    assert commands(EXAMPLE / "README.md")[0] in commands(ROOT / "docs" / "flower.md")


@pytest.fixture
def app(monkeypatch):
    """Return the modules of the example, which are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from digitsapp import client_app, server_app, task

    yield client_app, server_app, task
    for name in [name for name in sys.modules if name.partition(".")[0] == "digitsapp"]:
        del sys.modules[name]


def ask(by_hand, task, node):
    torch.manual_seed(0)
    return by_hand.ask(ArrayRecord(task.Net().state_dict()), node=node, lr=0.1)


def context(by_hand, node, **config):
    context = by_hand.context(node)
    context.node_config = {"partition-id": node, "num-partitions": NODES}
    context.run_config = {**CONFIG, **config}
    return context


def test_its_two_sides_work_by_hand_and_the_cheapest_attacks_find_a_leak(by_hand, app, tmp_path):
    client_app, server_app, task = app
    assert server_app.app is not None
    messages = [ask(by_hand, task, node) for node in range(NODES)]

    class Planned(FedAvg):
        def configure_train(self, *_):
            return messages

    strategy = record(Planned(), tmp_path / "seen", model=task.Net)
    strategy.configure_train(1, ArrayRecord(task.Net().state_dict()), ConfigRecord(), None)
    truth = tmp_path / "truth"
    replies = [
        client_app.app(message, context(by_hand, node, **{"truth-to": str(truth)}))
        for node, message in enumerate(messages)
    ]
    strategy.aggregate_train(1, replies)
    plan = capture_plan(tmp_path / "seen", Factory(function="digitsapp.task:Net"), truth)
    records = run(cheapest(plan), tmp_path / "audit")
    assert {one.status for one in records if one.cell.label == "label_reading"} == {Status.DONE}
    verdict = [sentence for sentence in summarise(records).verdict if sentence.startswith("As captured")]
    assert verdict[0].startswith("As captured: leaks.")


@pytest.mark.parametrize("defence", ["noise", "top-k", "local-dp"])
def test_a_switch_of_the_run_chooses_the_defence(by_hand, app, caplog, defence):
    client_app, _, task = app
    caplog.set_level("INFO")
    reply = client_app.app(ask(by_hand, task, 0), context(by_hand, 0, defence=defence))
    assert not reply.has_error()
    assert "noise norm" in caplog.text
