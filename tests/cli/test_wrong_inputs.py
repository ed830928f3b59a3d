"""What a person can get wrong, and the one sentence that each mistake is answered with."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOOD = {
    "scenario": 'data = "digits"\nmodel = "mlp"\nrounds = 1\nparticipants = 2\n',
    "defences": "",
    "attacks": '[[attacks]]\nkind = "analytic"\n',
    "threat": "",
    "grid": "[grid]\nvictims = 2\n",
    "extra": "",
}


def toml(**parts: str) -> str:
    chosen = {**GOOD, **parts}
    return (
        chosen["extra"]
        + "[scenario]\n"
        + "".join(chosen[name] for name in ("scenario", "defences", "attacks", "threat", "grid"))
    )


def split(kind: str, file: str, model: str) -> str:
    """Return the plan of a split audit on a file."""
    scenario = f'kind = "split"\nrounds = 4\nbatch_size = 16\nmodel = "{model}"\ndata = {{ kind = "{kind}", path = "{file}" }}\n'
    return toml(
        scenario=scenario,
        attacks='[[attacks]]\nkind = "gradient_norm"\n',
        threat='[threat]\nseat = "feature-party"\n',
        grid='[grid]\nbatch_sizes = [16]\nstages = ["training"]\nvictims = 2\n',
    )


def npz(**changes: Any) -> dict[str, Any]:
    images = np.random.default_rng(0).random((40, 1, 8, 8)).astype(np.float32)
    labels = np.arange(40) % 4
    whole = {"x_train": images, "y_train": labels, "x_test": images[:8], "y_test": labels[:8]}
    return {**whole, **changes}


def with_nan() -> np.ndarray:
    images = npz()["x_train"].copy()
    images[3, 0, 0, 0] = np.nan
    return images


DATA = """
import torch

def outside():
    return torch.rand(40, 1, 8, 8), torch.arange(40) % 4, torch.rand(8, 1, 8, 8), torch.arange(8) % 4
"""

MODULE = """
import torch
from torch import nn

def words(shape, classes):
    return "not a module"

def broken(shape, classes):
    raise ValueError("nothing works")

def normalised(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, classes))
"""


@pytest.fixture
def here(leaktight: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command in a folder that holds every wrong file."""
    (tmp_path / "wrong_models.py").write_text(MODULE)
    (tmp_path / "wrong_data.py").write_text(DATA)
    (tmp_path / "one_class.csv").write_text("age,job,label\n" + "".join(f"{row},{row % 3},0\n" for row in range(60)))
    clicks = "".join(",".join(["0", *[str(row % 7)] * 39]) + "\n" for row in range(60))
    (tmp_path / "criteo_one_class.csv").write_text(clicks)
    (tmp_path / "criteo_header.csv").write_text(
        ",".join(["label", *["I"] * 39]) + "\n" + clicks + clicks.replace("0,", "1,", 1)
    )
    np.savez(tmp_path / "nan.npz", **npz(x_train=with_nan()))
    np.savez(tmp_path / "labels.npz", **npz(y_train=np.full(40, -3)))
    np.savez(tmp_path / "shape.npz", **npz(x_test=np.zeros((8, 3, 9, 9), dtype=np.float32)))
    np.savez(tmp_path / "whole.npz", **npz())
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:300])
    idx = tmp_path / "idx"
    idx.mkdir()
    for name in ("train", "t10k"):
        header = b"\x00\x00\x08\x03" + (20).to_bytes(4, "big") + (28).to_bytes(4, "big") * 2
        (idx / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(header + b"\x07" * 100))
        (idx / f"{name}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(b"\x00\x00\x08\x01" + (20).to_bytes(4, "big") + bytes(20))
        )
    for name in ("noise", "other", "newer"):
        (tmp_path / name).mkdir()
    (tmp_path / "noise" / "audit.sqlite").write_bytes(b"\x00 not a database " * 99)
    for name, pragma in {"other": "application_id = 5", "newer": "user_version = 99"}.items():
        with sqlite3.connect(tmp_path / name / "audit.sqlite") as store:
            store.execute("CREATE TABLE cells (key)")
            if name == "newer":
                store.execute(f"PRAGMA application_id = {0x1EAC7161}")
            store.execute(f"PRAGMA {pragma}")
        store.close()
    (tmp_path / "file").write_text("")
    return leaktight


AUDIT = ("audit", "plan.toml", "--workers", "1")
TABLE: dict[str, tuple[tuple[str, ...], str, str]] = {
    "missing plan": (("audit", "nowhere.toml"), "", "There is no file `nowhere.toml`. Write one with `leaktight init nowhere.toml`."),
    "no TOML": (AUDIT, "[grid\n", "The file `plan.toml` is not valid TOML: Expected ']' at the end of a table declaration (at line 1, column 6)."),
    "unknown section": (AUDIT, toml(extra="titel = 'x'\n"), "There is no section `titel`. Did you mean `title`?"),
    "unknown key": (AUDIT, toml(grid="[grid]\nvictim = 2\n"), "grid: Grid has no setting `victim`. Did you mean `victims`?"),
    "unknown kind": (AUDIT, toml(defences='[[defences]]\nkind = "gaussian"\n'), "defences[0]: There is no defence named `gaussian`. Did you mean `gaussian_noise`?"),
    "unknown preset": (AUDIT, toml(attacks='[[attacks]]\npreset = "dlg"\n'), "attacks[0]: There is no preset named `dlg`."),
    "unknown attack": (AUDIT, toml(scenario=GOOD["scenario"], attacks="", extra='attacks = ["dlg2091"]\n'), "attacks[0]: There is no preset or kind named `dlg2091`. Did you mean `dlg2019`?"),
    "two words for scenarios": (AUDIT, toml(grid='[[scenarios]]\ndata = "digits"\n'), "scenarios: There is a `[scenario]` too. Give one or the other."),
    "negative noise": (AUDIT, toml(defences='[[defences]]\nkind = "gaussian_noise"\nstd = -1\n'), "defences[0]: The `std` of gaussian_noise must be at least 0"),
    "infinite noise": (AUDIT, toml(defences='[[defences]]\nkind = "gaussian_noise"\nstd = inf\n'), "defences[0]: The `std` of gaussian_noise must be a finite number."),
    "a word for a number": (AUDIT, toml(grid="[grid]\nvictims = 'many'\n"), "grid: The `victims` of Grid must be a whole number or `all`. Got 'many' instead."),
    "no victims": (AUDIT, toml(grid="[grid]\nvictims = 0\n"), "grid: The `victims` of Grid must be at least 1. Got 0 instead."),
    "batch beyond the data": (AUDIT, toml(grid="[grid]\nbatch_sizes = [9999]\n"), "The batch size must be at most 719, what the smallest participant owns. Got 9999 instead."),
    "unknown seat": (AUDIT, toml(threat='[threat]\nseat = "client-9"\n'), "There is no seat `client-9` for analytic in this scenario."),
    "no such data file": (("audit", "--data", "none/at/all.npz"), "", "There is no file or folder `none/at/all.npz`."),
    "NaN in the data": (("audit", "--data", "nan.npz", "--model", "mlp"), "", "must be finite numbers. Got NaN or infinite values in 1 examples; remove or fill them."),
    "label out of range": (AUDIT, toml(scenario='model = "mlp"\ndata = { kind = "factory", function = "wrong_data:outside", classes = 3 }\n'), "must have whole labels from 0 to 2. Got labels from 0 to 3 instead."),
    "label that was never trained": (("audit", "--data", "labels.npz", "--model", "mlp"), "", "The file `labels.npz` must have test labels that occur in training."),
    "shapes that differ": (("audit", "--data", "shape.npz", "--model", "mlp"), "", "must have examples of shape (1, 8, 8). Got (3, 9, 9) instead."),
    "a label file of one class": (AUDIT, split("csv", "one_class.csv", "mlp"), "The labels of csv(path='one_class.csv') must name at least 2 classes. Got 1 instead."),
    "clicks of one class": (AUDIT, split("criteo", "criteo_one_class.csv", "wide_deep"), "The labels of criteo(path='criteo_one_class.csv') must name at least 2 classes. Got 1 instead."),
    "clicks with a header": (AUDIT, split("criteo", "criteo_header.csv", "wide_deep"), "The labels of `criteo_header.csv` must be 0 and 1. Got `label` in line 1"),
    "truncated npz": (("audit", "--data", "cut.npz", "--model", "mlp"), "", "The file `cut.npz` must be a whole NumPy archive without pickles. It is not (File is not a zip file); make or fetch it again."),
    "truncated IDX": (("audit", "--data", "idx", "--model", "mlp"), "", "The IDX file `idx/train-images-idx3-ubyte.gz` is truncated: its header promises 15696 bytes. Got 116 instead; fetch it again."),
    "unknown model": (("audit", "--model", "resnet2"), "", "There is no model named `resnet2`. Did you mean `resnet20`?"),
    "model that does not fit": (("audit", "--model", "lenet", "--data", "digits"), "", "lenet needs images of at least 12x12 pixels. Got 8x8 instead"),
    "no such module": (("audit", "--model", "nowhere.models:net"), "", "There is no module named `nowhere` in the current folder"),
    "no such function": (("audit", "--model", "wrong_models:normalized"), "", "Did you mean `normalised`?"),
    "no module at all": (("audit", "--model", "wrong_models:words", "--data", "digits"), "", "It must be a torch.nn.Module. Got str instead; return the module itself."),
    "a factory that fails": (("audit", "--model", "wrong_models:broken", "--data", "digits"), "", "`wrong_models:broken` failed with ValueError: nothing works (wrong_models.py, line 9)."),
    "batch norm": (("audit", "--model", "wrong_models:normalised", "--data", "digits"), "", "Batch norm `body.2` cannot normalise a batch of 1 by its own statistics"),
    "no such layer": (("audit", "--model", "wrong_models:normalised", "--data", "digits", "--head", "top"), "", "It has no linear layer named `top`. Known are: `1`, `4`."),
    "head of a known model": (("audit", "--model", "mlp", "--head", "top"), "", "`--head` names a layer of your own model."),
    "plan and preset": (("audit", "plan.toml", "--preset", "quick"), toml(), "Give a file or a preset, not both."),
    "no workers": (("audit", "plan.toml", "--workers", "0"), toml(), "The number of workers must be at least 1. Got 0 instead."),
    "negative seed": (("audit", "plan.toml", "--seed", "-1"), toml(), "The `seeds` of Grid must be whole numbers of at least 0. Got -1 instead."),
    "absent device": (("audit", "plan.toml", "--device", "mps"), toml(), "The device `mps` is not there"),
    "unknown device": (("audit", "plan.toml", "--device", "gpu"), toml(), "'gpu' is not one of 'auto', 'cpu', 'cuda', 'mps'."),
    "a file in place of a folder": ((*AUDIT, "--out", "file"), toml(), "The folder `file` cannot be made: file exists. Choose another one."),
    "an unreadable store": ((*AUDIT, "--out", "noise"), toml(), "The file `noise/audit.sqlite` is not a store that can be read."),
    "another program's database": ((*AUDIT, "--out", "other"), toml(), "The file `other/audit.sqlite` is not an audit store. Choose another folder."),
    "a newer store": (("export", "newer"), "", "The store `newer/audit.sqlite` has format 99, and this release reads format 3. Use the release that wrote it, or choose another folder."),
    "no audit to report": (("report", "nowhere"), "", "There is no audit in `nowhere`. Name the folder that `leaktight audit --out` wrote to."),
    "unknown format": (("export", "noise", "--format", "xml"), "", "'xml' is not one of 'jsonl', 'csv', 'summary', 'schema'."),
    "export to nowhere": (("export", "AUDITED", "--out", "file/readings.csv"), "", "The folder `file` cannot be made: file exists. Choose another one."),
    "init over a file": (("init", "file"), "", "There is a file `file` already. Name another one, or move it away."),
    "unknown family": (("list", "defenses"), "", "There is no family named `defenses`. Did you mean `defences`?"),
    "unknown thing to explain": (("explain", "gausian_noise"), "", "There is no kind or preset named `gausian_noise`. Did you mean `gaussian_noise`?"),
    "unknown command": (("audits",), "", "No such command 'audits'. Did you mean `audit`?"),
    "unknown option": (("audit", "--modle", "mlp"), "", "No such option '--modle'. Did you mean `--model`?"),
    "an option that is no slip": (("audit", "--colour", "red"), "", "No such option '--colour'."),
    "knows less than its attack needs": (AUDIT, toml(attacks='[[attacks]]\nkind = "learned_inverter"\n', threat='[threat]\nknows = []\n'), "What the attacker `knows` contradicts the attacks: learned_inverter needs auxiliary"),
    "schema of what": (("export",), "", "The audit's folder is missing."),
}  # fmt: skip


@pytest.mark.parametrize("mistake", TABLE)
def test_one_sentence_for_each_mistake(here: Callable[..., Any], mistake: str, tmp_path: Path, audited: Path) -> None:
    words, plan, sentence = TABLE[mistake]
    (tmp_path / "plan.toml").write_text(plan)
    said = here(*(str(audited) if word == "AUDITED" else word for word in words))
    assert said.code == 2
    assert sentence in said.err
    assert "Traceback" not in said.err + said.out
    assert said.out == ""
    assert len(said.err.splitlines()) <= 6
    assert not (tmp_path / "leaktight-plan").exists()


def test_a_full_disk(here: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leaktight.running import Store

    begin = Store.begin

    def nearly(store: Store, plan: Any) -> None:
        begin(store, plan)
        [(pages,)] = store._connection.execute("PRAGMA page_count").fetchall()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")

    monkeypatch.setattr(Store, "begin", nearly)
    (tmp_path / "plan.toml").write_text(toml())
    said = here(*AUDIT)
    assert said.code == 2
    assert (
        "The disk is full, and a cell could not be written to `leaktight-plan/audit.sqlite`. Finished cells are kept"
        in said.err
    )
    assert "Traceback" not in said.err
    monkeypatch.setattr(Store, "begin", begin)
    assert here(*AUDIT).code == 0
