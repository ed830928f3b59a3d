"""Numbers that are never stale: a record or a training run is used again only if nothing that made it has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import leaktight
from leaktight import plans, running
from leaktight.attacks import Analytic
from leaktight.core.display import capital
from leaktight.core.probe import Attempt
from leaktight.core.record import Record, Status
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated
from leaktight.metrics import PSNR
from leaktight.models import Factory
from leaktight.running.content import RESPONSE
from leaktight.running.store import STORE_FILE, TRAINING_FOLDER

Plans = Callable[..., Any]
MODEL = """
from torch import nn
from our_layers.activation import Bend

def net(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), Bend(), nn.Linear(8, classes))
"""
ACTIVATION = """
import os
from torch import nn

class Bend(nn.Module):
    def forward(self, x):
        return {bent}
"""


@pytest.fixture
def write(tmp_path: Path, forget_modules: Callable[[str], None]) -> Callable[[str], None]:
    """Return how a person edits the module that the model's module imports, and starts Python anew."""
    (tmp_path / "our_layers").mkdir()
    (tmp_path / "our_layers" / "__init__.py").touch()
    (tmp_path / "our_model.py").write_text(MODEL)

    def edit(bent: str) -> None:
        (tmp_path / "our_layers" / "activation.py").write_text(ACTIVATION.format(bent=bent))
        forget_modules("our_")

    return edit


@pytest.fixture
def ours() -> plans.Plan:
    return plans.Plan(
        scenarios={"1": Federated(data=Digits(), model=Factory(function="our_model:net"), rounds=1)},
        defences=(GaussianNoise(std=0.01),),
        probes={"analytic": Attempt(attack=Analytic(), metrics=(PSNR(),))},
        # Of two examples at once it finds a mixture, whose weights follow from the activation.
        grid=plans.Grid(victims=2, batch_sizes=(2,)),
    )


def numbers(records: list[Record]) -> list[tuple[float, ...]]:
    assert {record.status for record in records} == {Status.DONE}
    return [tuple(reading.value for reading in record.readings) for record in records]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [record.message for record in caplog.records if record.name.startswith("leaktight")]
    caplog.clear()
    return messages


@pytest.mark.long
def test_a_changed_module_behind_an_own_model_is_computed_again_here_and_by_workers(
    ours: plans.Plan, write: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write("x.tanh()")
    old = numbers(running.run(ours, tmp_path / "out"))
    assert numbers(running.run(ours, tmp_path / "out")) == old
    assert said(caplog) == []
    write("x.square()")
    new = numbers(running.run(ours, tmp_path / "out"))
    # All but the control, which has a network of its own.
    assert said(caplog) == ["our_layers/activation.py changed, so 3 of 4 cells are computed again."]
    assert new == numbers(running.run(ours, tmp_path / "fresh", workers=2))
    assert new[0] != old[0]
    assert numbers(running.run(ours, tmp_path / "out")) == new
    assert said(caplog) == []


def test_a_changed_environment_that_a_model_reads_is_computed_again(
    ours: plans.Plan, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write('x.tanh() * float(os.environ.get("OUR_SLOPE", "1"))')
    old = numbers(running.run(ours, tmp_path / "out"))
    monkeypatch.setenv("OUR_SLOPE", "3")
    new = numbers(running.run(ours, tmp_path / "out"))
    assert said(caplog) == [f"{capital(RESPONSE)} changed, so 3 of 4 cells are computed again."]
    assert new == numbers(running.run(ours, tmp_path / "fresh"))
    assert new[0] != old[0]


AUDIT = """
import json, logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stderr)
from leaktight import plans, running
plan = plans.parse_plan({
    "scenario": {"data": "digits", "model": "mlp", "rounds": 1},
    "defences": [{"kind": "gaussian_noise", "std": 0.02}, {"kind": "laplace_noise", "scale": 0.01}],
    "attacks": ["analytic"],
    "grid": {"victims": 2},
})
computed = []
records = running.run(plan, sys.argv[1], progress=lambda step: step.status and computed.append(step.text))
print(json.dumps({
    "file": running.__file__,
    "computed": computed,
    "psnr": {record.cell.defence.kind: record.reading("psnr").value for record in records if record.cell.purpose == "measure"},
}))
"""


LOUDER = """

_plain = GaussianNoise.on_message


def _louder(self, message, local):
    return _plain(self.model_copy(update={"std": 1000 * self.std}), message, local)


GaussianNoise.on_message = _louder
"""


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.long
def test_in_a_checkout_a_changed_defence_is_computed_again_and_a_changed_sentence_is_not(tmp_path: Path) -> None:
    package = tmp_path / "src" / "leaktight"
    shutil.copytree(Path(leaktight.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))

    def run() -> tuple[dict[str, Any], str]:
        place = {**os.environ, "PYTHONPATH": str(package.parent)}
        words = [sys.executable, "-B", "-c", AUDIT, str(tmp_path / "out")]
        done = subprocess.run(words, env=place, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        assert Path(found["file"]).is_relative_to(package)
        return found, done.stderr

    first, complaint = run()
    assert len(first["computed"]) == 9
    assert complaint == ""
    with (package / "defences" / "gaussian.py").open("a") as file:
        file.write(LOUDER)
    # None of these changes a number.
    edit(package / "defences" / "laplace.py", '"""', '"""In other words: ')
    edit(package / "learning" / "federated.py", "import copy\n", "import copy  # with a remark\n\n")
    for folder, name in [
        *(("findings", name) for name in ("verdict", "sentence", "rows", "summary")),
        ("running", "scheduler"),
    ]:
        with (package / folder / f"{name}.py").open("a") as file:
            file.write('\n\nSENTENCE = "This is said in other words."\n')
    with (package / "report" / "render.py").open("a") as file:
        file.write('\n\nSENTENCE = "This is shown in other words."\n')
    second, complaint = run()
    assert complaint == "leaktight/defences/gaussian.py changed, so 1 of 5 cells is computed again.\n"
    assert second["computed"] == [
        "training with gaussian_noise(std=0.02)",
        "analytic against gaussian_noise(std=0.02), batch 1, initial",
    ]
    assert {kind for kind in first["psnr"] if first["psnr"][kind] != second["psnr"][kind]} == {"gaussian_noise"}


def flip(path: Path, text: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(text) + len(text)] ^= 1
    path.write_bytes(content)


@pytest.fixture
def toy(toy_plan: Plans, toys: ModuleType, tmp_path: Path) -> Any:
    return toy_plan(
        scenario={"log": str(tmp_path / "trained")},
        attacks={"a": {"log": str(tmp_path / "attacked")}},
        defences=(toys.ToyNoise(std=0.1),),
    )


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_a_flipped_byte_in_a_record_is_named_and_computed_again(
    toy: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = running.run(toy, tmp_path / "out")
    whole = numbers(records)
    [noisy] = [record for record in records if record.cell.defence.kind == "toy_noise"]
    flip(tmp_path / "out" / STORE_FILE, f'"seconds": {noisy.seconds}'[:-1].encode())
    assert numbers(running.run(toy, tmp_path / "out")) == whole
    assert said(caplog) == ["The record of a against toy_noise, batch 1, initial is damaged and is computed again."]
    assert (lines(tmp_path / "trained"), lines(tmp_path / "attacked")) == (2, 4)


def test_several_damaged_records_are_named_in_one_sentence(
    toy: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = running.run(toy, tmp_path / "out")
    noisy, bare = (
        next(record for record in records if (record.cell.defence.kind, record.cell.purpose) == (kind, "measure"))
        for kind in ("toy_noise", "none")
    )
    for record in (noisy, bare):
        flip(tmp_path / "out" / STORE_FILE, f'"seconds": {record.seconds}'[:-1].encode())
    assert numbers(running.run(toy, tmp_path / "out")) == numbers(records)
    [sentence] = said(caplog)
    start, names = sentence.split(": ")
    assert start == "2 records are damaged and are computed again"
    assert set(names.removesuffix(".").split("; ")) == {
        f"a against {kind}, batch 1, initial" for kind in ("toy_noise", "none")
    }


def test_a_flipped_byte_in_a_training_run_is_named_and_computed_again(
    toy: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = numbers(running.run(toy, tmp_path / "out"))
    (tmp_path / "out" / STORE_FILE).unlink()
    path = sorted((tmp_path / "out" / TRAINING_FOLDER).iterdir())[0]
    content = path.read_bytes()
    path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    assert numbers(running.run(toy, tmp_path / "out", workers=2)) == whole
    assert said(caplog) == [f"The training run `{path}` is damaged and is computed again."]
    assert lines(tmp_path / "trained") == 3
    assert path.read_bytes() == content


def test_a_changed_training_run_without_cells_is_told_of_too(
    toy: Any, tmp_path: Path, interrupted: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    out, before = tmp_path / "out", leaktight.__version__
    with pytest.raises(KeyboardInterrupt):
        running.run(toy, out, workers=interrupted(1))
    monkeypatch.setattr(leaktight, "__version__", "99.0")
    running.run(toy, out)
    assert said(caplog) == [
        f"The version of leaktight ({before}, now 99.0) changed, so 1 of 2 training runs is computed again."
    ]
    assert lines(tmp_path / "trained") == 3


NOISE = """
from typing import Literal
from leaktight.core.defence import Defence

def push(tensor):
    return tensor * 1.5

class OurNoise(Defence):
    kind: Literal["our_noise"] = "our_noise"

    def on_message(self, message, local):
        return message.map(push)
"""
EDITED = """
import json, logging, sys
from pathlib import Path
logging.basicConfig(format="%(message)s", stream=sys.stderr)
import our_noise
from leaktight import plans, running
if sys.argv[2] == "edit":
    file = Path(our_noise.__file__)
    file.write_text(file.read_text().replace("1.5", "-150.0"))
document = {"scenario": {"data": "digits", "model": "mlp", "rounds": 1}, "attacks": ["analytic"], "grid": {"victims": 2}}
plan = plans.parse_plan({**document, "defences": [{"kind": "our_noise"}]})
records = running.run(plan, sys.argv[1])
print(json.dumps([[reading.value for reading in record.readings] for record in records if record.cell.defence.kind == "our_noise"]))
"""


@pytest.mark.long
def test_numbers_of_code_that_was_edited_after_it_was_loaded_are_not_taken_for_the_new_code(tmp_path: Path) -> None:
    (tmp_path / "our_noise.py").write_text(NOISE)

    def run(how: str, out: str = "out") -> tuple[Any, str]:
        words = [sys.executable, "-B", "-c", EDITED, str(tmp_path / out), how]
        place = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(leaktight.__file__).parents[1])])}
        done = subprocess.run(words, env=place, check=True, capture_output=True, text=True, cwd=tmp_path)
        return json.loads(done.stdout), done.stderr

    old, _ = run("edit")
    new, complaint = run("leave")
    assert complaint == "our_noise.py changed, so 1 of 4 cells is computed again.\n"
    assert new != old
    assert run("leave") == (new, "")


SCRIPT = """
import os, sys, time
from typing import ClassVar, Literal
from leaktight import plans, running
from leaktight.core.defence import Defence

SLOPE = float(os.environ.get("OUR_SLOPE", "1.5"))
SHARES = {"a": 1.0}
CALLS = 0

def push(tensor, by=2.0):
    global CALLS
    CALLS += 1
    return tensor * by * SLOPE * SHARES["a"]

class OurScript(Defence):
    kind: Literal["our_script"] = "our_script"
    least: ClassVar[float] = 0.5

    def on_message(self, message, local):
        return message.map(lambda tensor: push(tensor) * self.least)

if __name__ == "__main__":
    started = time.time()
    document = {"scenario": {"data": "digits", "model": "mlp", "rounds": 1}, "attacks": ["analytic"], "grid": {"victims": 2}}
    plan = plans.parse_plan({**document, "defences": [{"kind": "our_script"}]})
    for out, workers in (("one", 1), ("one", 2), ("two", 2)):
        computed = []
        records = running.run(plan, out, workers=workers, progress=lambda step: step.status and computed.append(step.text))
        print(len(computed), sorted({record.status.value for record in records}))
"""


@pytest.mark.long
def test_workers_agree_on_code_in_a_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    place = {**os.environ, "PYTHONPATH": str(Path(leaktight.__file__).parents[1])}
    words = [sys.executable, "-B", "script.py"]
    done = subprocess.run(words, env=place, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["7 ['done']", "0 ['done']", "7 ['done']"]
    assert done.stderr == ""


DATA = """
import numpy as np

def load():
    with np.load(PATH) as held:
        return held["x"], held["y"], held["x"], held["y"]
"""


def test_a_file_that_an_own_data_function_reads_is_read_again_in_every_run(
    tmp_path: Path, write: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ours.npz"
    (tmp_path / "our_data.py").write_text(DATA.replace("PATH", repr(str(path))))
    plan = plans.parse_plan(
        {
            "scenario": {"data": "our_data:load", "model": "mlp", "rounds": 1, "participants": 1},
            "attacks": ["analytic"],
            "grid": {"victims": 2},
        }
    )
    inputs = np.random.default_rng(0).random((12, 1, 2, 2)).astype(np.float32)
    found = []
    for pixels in (inputs, 1 - inputs):
        np.savez(path, x=pixels, y=np.arange(12) % 2)
        found.append(numbers(running.run(plan, tmp_path / "out")))
    assert said(caplog) == ["The data changed, so 3 of 3 cells are computed again."]
    assert found[1] == numbers(running.run(plan, tmp_path / "fresh"))
    assert found[0] != found[1]
