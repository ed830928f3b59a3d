"""A public-style app, one line added on each side: trained under a defence, captured, audited from the captures, reported."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from leaktight.attacks import preset
from leaktight.captures import Captured, read_captures, write_truth
from leaktight.captures.manifest import ENDING
from leaktight.captures.sender import exchange, undefended_message
from leaktight.cli.main import main
from leaktight.core.record import Status
from leaktight.core.task import Batch
from leaktight.data import Digits
from leaktight.flower import TELEMETRY_OFF
from leaktight.models import Factory
from leaktight.plans import capture_plan
from leaktight.report import write_report
from leaktight.running import run

pytestmark = [pytest.mark.flower, pytest.mark.timeout(600)]
APP = Path(__file__).parent / "quickstart"
TOOLS = Path(sys.executable).parent
PROTECT = "app = ClientApp(mods=[protect(Chain(links=(TopK(share=0.1), GaussianNoise(std=0.002))))])"
IMPORTS = "from leaktight.core.defence import Chain\nfrom leaktight.defences import GaussianNoise, TopK\nfrom leaktight.flower import protect\n"
RECORD = '    strategy = record(strategy, "{folder}", shape=(1, 8, 8), batch_size=1, epochs=1)\n'


def added(path: Path, before: str, line: str, imports: str) -> None:
    """Put a line behind another one, and its imports on top of the module's own."""
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, before + line).replace("\nfrom flwr", f"\n{imports}from flwr", 1))


@contextmanager
def superlink(home: Path, launch, end_all):
    """Run a SuperLink for simulations on a free port, and end it and whatever it started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home.mkdir()
    profile = f'[superlink]\ndefault = "ours"\n[superlink.ours]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    (home / "config.toml").write_text(profile)
    environment = {
        **os.environ,
        **TELEMETRY_OFF,
        "FLWR_HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
    }
    options = ["--insecure", "--simulation", "--port", str(port), "--disable-runtime-dependency-installation"]
    with (home / "superlink.log").open("wb") as log:
        process = launch([TOOLS / "flower-superlink", *options], env=environment, stdout=log, stderr=log)
    try:
        wait_for(port, process)
        yield environment
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        end_all(home)


def wait_for(port: int, process: subprocess.Popen) -> None:
    for _ in range(300):
        assert process.poll() is None
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the SuperLink did not come up")


@pytest.fixture(scope="module")
def trained(launch, end_all, tmp_path_factory):
    """Train the app in Flower's simulation, with one line on each side; return its folder and what it said."""
    folder = tmp_path_factory.mktemp("story") / "app"
    shutil.copytree(APP, folder)
    added(folder / "quickstart" / "client_app.py", "app = ClientApp()\n", f"{PROTECT}\n", IMPORTS)
    strategy = "    strategy = FedAvg(fraction_evaluate=1.0)\n"
    recorded = RECORD.format(folder=folder / "captures")
    added(folder / "quickstart" / "server_app.py", strategy, recorded, "from leaktight.flower import record\n")
    with superlink(folder.parent / "home", launch, end_all) as environment:
        settings = f"examples=1 batch-size=1 save-to='{folder / 'final.safetensors'}'"
        nodes = "num-supernodes=2 client-resources-num-cpus=1"
        words = [TOOLS / "flwr", "run", ".", "ours", "--stream", "-c", settings, "--federation-config", nodes]
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=400, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def owners(folder: Path, captures: Path) -> dict[str, Batch]:
    """Return the private batch behind each capture, found by the owners: the partition whose own update points the same way."""
    sys.path.insert(0, str(folder))
    try:
        from quickstart.task import load_data
    finally:
        sys.path.remove(str(folder))
    parts = [next(iter(load_data(place, 2, 1, 1)[0])) for place in range(2)]
    scenario = Captured(folder=str(captures), model=Factory(function="quickstart.task:Net"))
    found = {}
    for capture in scenario.captures():
        task = scenario.task(capture)
        asked, sent = exchange(capture, task)
        batches = [Batch(inputs, labels) for inputs, labels in parts]
        plain = [undefended_message(task, asked, sent, batch, capture.manifest) for batch in batches]
        found[capture.manifest.name] = batches[max((0, 1), key=lambda place: likeness(plain[place], sent))]
    return found


def likeness(one, other) -> float:
    first, second = (torch.cat([message.tensors[name].flatten() for name in other.tensors]) for message in (one, other))
    return float(torch.nn.functional.cosine_similarity(first, second, dim=0))


def test_the_app_trains_under_the_defence_and_every_update_is_captured(trained):
    folder, said = trained
    assert "Received 2 results and 0 failures" in said
    assert (folder / "final.safetensors").is_file()
    captures = read_captures(folder / "captures")
    assert sorted({capture.manifest.round for capture in captures}) == [1, 2]
    assert len(captures) == 4
    for capture in captures:
        manifest = capture.manifest
        assert (manifest.kind, manifest.examples, manifest.local_steps, manifest.learning_rate) == ("update", 1, 1, 0.1)
        assert list(capture.tensors()) == [
            "conv1.weight",
            "conv1.bias",
            "conv2.weight",
            "conv2.bias",
            "fc.weight",
            "fc.bias",
        ]
        assert oct((folder / "captures" / manifest.tensors).stat().st_mode & 0o777) == "0o600"


def test_the_captured_updates_carry_noise_of_the_given_deviation_that_is_never_the_same(trained):
    folder, _ = trained
    captures = read_captures(folder / "captures")
    flat = [torch.cat([tensor.flatten() for tensor in capture.tensors().values()]) for capture in captures]
    for entries in flat:
        # Nine in ten entries were zero before the noise; the median ignores the rest.
        deviation = float(entries.abs().median()) / 0.6745
        assert 0.0018 < deviation < 0.0026
    noise = torch.stack([torch.where(entries.abs() < 0.006, entries, 0) for entries in flat])
    alike = torch.corrcoef(noise) - torch.eye(len(noise))
    assert alike.abs().max() < 0.2


def test_the_captures_are_audited_without_the_data_and_a_report_is_made(trained, monkeypatch, capsys):
    folder, _ = trained
    monkeypatch.chdir(folder)
    for capture in [one for one in read_captures(Path("captures")) if one.manifest.round == 2]:
        for file in (
            capture.manifest.tensors,
            capture.manifest.parameters,
            f"{Path(capture.manifest.tensors).stem}{ENDING}",
        ):
            Path("last").mkdir(exist_ok=True)
            shutil.copy(Path("captures") / file, Path("last"))
    words = ["audit", "--captured", "last", "--model", "quickstart.task:Net", "--out", "audit", "--workers", "1"]
    assert main(words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "As captured: unknown." in said
    page = (folder / "audit" / "report.html").read_text()
    assert page.count("data:image/png") == 2
    assert "not graded" in page


def test_the_owner_grades_them_and_sees_that_the_defence_works(trained, monkeypatch):
    folder, _ = trained
    monkeypatch.chdir(folder)
    write_truth(folder / "truth.safetensors", owners(folder, folder / "captures"))
    plan = capture_plan(
        Path("captures"), Factory(function="quickstart.task:Net"), Path("truth.safetensors"), public=Digits()
    )
    search = plan.probes["strongest"].model_copy(update={"attack": preset("idlg2020", iterations=60)})
    plan = plan.model_copy(update={"probes": {"idlg2020*": search}})
    records = run(plan, folder / "graded")
    assert {record.status for record in records} == {Status.DONE}
    psnr = {
        record.cell.defence.kind: record.reading("psnr", "raw")
        for record in records
        if record.cell.purpose == "measure"
    }
    assert psnr["none"].value > 30
    assert psnr["as_captured"].value < 15
    page = write_report(folder / "graded").read_text()
    assert "What the senders did was not broken by idlg2020, changed" in page
