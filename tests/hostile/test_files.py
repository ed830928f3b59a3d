"""Hostile files, each given to every command that reads such a file: one sentence, exit code 2, below 1 GiB and 10 seconds."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import inputs
import pytest
import torch
from PIL import Image

from leaktight.captures.capture import write_capture
from leaktight.captures.truth import write_truth
from leaktight.core.certificates import make_certificates
from leaktight.core.task import Batch

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peaks of memory are read from /proc"),
]
MOST_MEMORY, MOST_SECONDS = 1 << 30, 10.0
Commands = tuple[tuple[str, ...], ...]
MODEL = """
from torch import nn

def net(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type of file.

    Args:
        inputs: what is hostile about it, and how it is made.
        place: the hostile file.
        commands: every command that reads it.
        prepare: makes what else the commands need.
    """

    inputs: dict[str, inputs.Maker]
    place: str
    commands: Commands
    prepare: Callable[[Path], None] = lambda folder: None


def plan(data: str = '"digits"', defence: str = "", model: str = "mlp") -> str:
    scenario = f'[scenario]\nmodel = "{model}"\nrounds = 1\nparticipants = 2\nbatch_size = 2\ndata = {data}\n'
    return f'{scenario}{defence}[[attacks]]\nkind = "analytic"\n[grid]\nvictims = 2\n'


def party(role: str, data: str = '"rare_digit"', security: str = "insecure = true") -> str:
    scenario = f'[scenario]\nmodel = "mlp"\nrounds = 2\nbatch_size = 4\ndata = {data}\n'
    address = "listen" if role == "label-party" else "connect"
    return f'{scenario}[wire]\n{address} = "127.0.0.1:9"\n{security}\ncheckpoint = "party.safetensors"\npatience = 1\n'


ROLES = ("label-party", "feature-party")
PLANS: Commands = (("audit", "plan.toml", "--workers", "1"), ("train", "plan.toml"))
PARTIES: Commands = tuple(("split", role, f"{role}.toml") for role in ROLES)
SMALL = ("--scale", "small", "--data", "sets", "--workers", "1")


def settings(data: str, defence: str = "", own: dict[str, str] | None = None) -> Callable[[Path], None]:
    """Return what writes a plan and both parties' files for a source of data."""

    def prepare(folder: Path) -> None:
        (folder / "plan.toml").write_text(plan(data, defence))
        for role in ROLES:
            (folder / f"{role}.toml").write_text(party(role, (own or {}).get(role, data)))

    return prepare


def commands_on(path: str, *more: tuple[str, ...]) -> Commands:
    """Return the commands that take data by a path, and those that take it by their files."""
    words = ("--data", path, "--model", "mlp", "--workers", "1")
    return (("audit", *words), ("layers", *words), ("search", *words), *PLANS, *PARTIES, *more)


def reproduced(paper: str) -> tuple[str, ...]:
    return ("reproduce", paper, *SMALL)


def also(first: Callable[[Path], None], *folders: str) -> Callable[[Path], None]:
    """Return what also makes links to the folders that `reproduce` looks into."""

    def prepare(folder: Path) -> None:
        first(folder)
        for name in folders:
            (folder / name).mkdir(parents=True, exist_ok=True)

    return prepare


def pictures(folder: Path) -> None:
    settings('{kind = "image_folder", path = "pictures"}')(folder)
    for name in ("a/2.png", "a/3.png", "b/1.png", "b/2.png"):
        (folder / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8)).save(folder / "pictures" / name)


def faces(folder: Path) -> None:
    source = (
        '{kind = "attributes", path = "sets/lfw/images", table = "sets/lfw/faces.csv", label = "A", private_property '
        '= "B"}'
    )
    also(settings(source), "sets/lfw/images")(folder)


def other_idx(folder: Path) -> None:
    also(settings('{kind = "idx", path = "sets/mnist"}'), "sets/mnist")(folder)
    for name in ("train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        (folder / "sets/mnist" / name).write_bytes(b"\x00\x00\x08" + bytes(20))


def cifar(folder: Path) -> None:
    also(settings('{kind = "cifar", path = "sets/cifar10"}'), "sets/cifar10")(folder)
    (folder / "sets/cifar10/test_batch.bin").write_bytes(bytes(3073 * 20))


def captures(folder: Path) -> None:
    (folder / "hostile_net.py").write_text(MODEL)
    state = {"1.weight": torch.zeros(3, 16), "1.bias": torch.zeros(3)}
    known = {"kind": "gradient", "sender": "a", "round": 0, "examples": 1, "shape": (1, 4, 4), "classes": 3}
    manifest = write_capture(folder / "seen", state, state, **known)
    os.rename(folder / "seen" / manifest.tensors, folder / "seen" / "a.safetensors")
    os.rename(folder / "seen" / manifest.parameters, folder / "seen" / "b.safetensors")
    next((folder / "seen").glob("*.capture.json")).unlink()
    written = {**manifest.to_dict(), "tensors": "a.safetensors", "parameters": "b.safetensors"}
    (folder / "seen" / "a.capture.json").write_text(json.dumps(written))
    write_truth(folder / "truth.safetensors", {"a/0": Batch(torch.rand(1, 1, 4, 4), torch.tensor([1]))})


def certified(folder: Path) -> None:
    made = make_certificates(folder / "certificates", ROLES)
    for role in ROLES:
        security = f'certificates = "certificates/{role}"'
        (folder / f"{role}.toml").write_text(party(role, security=security).replace('"127.0.0.1:9"', '"127.0.0.1:0"'))
        for path in (made[role].authority, made[role].certificate):
            assert path.is_file()
    (folder / "certificates/feature-party").rename(folder / "certificates/other")
    (folder / "certificates/feature-party").symlink_to("label-party")


GUARD = (
    '[[defences]]\nkind = "layer_guard"\nranking = "layers.json"\nrisk = "labels"\nguard = {kind = "gaussian_noise"}\n'
)
POLICED = '[[defences]]\nkind = "transformation"\nfile = "policy.toml"\n'
SEARCH = (
    "search",
    "--quiet",
    "--data",
    "digits",
    "--model",
    "mlp",
    "--candidates",
    "4",
    "--epochs",
    "1",
    "--workers",
    "1",
    "--out",
    "p.toml",
)
TABLE_OF = {
    role: f'{{kind = "party_table", path = "NAME"{label}}}'
    for role, label in zip(ROLES, (', label = "label"', ""), strict=True)
}
AUDITED = ("audit", "--captured", "seen", "--model", "hostile_net:net", "--shape", "1,4,4", "--workers", "1")


def table(name: str) -> Callable[[Path], None]:
    own = {role: text.replace("NAME", name) for role, text in TABLE_OF.items()}
    return settings(f'{{kind = "csv", path = "{name}"}}', own=own)


def clicks(name: str) -> Kind:
    rows = inputs.CSV_GZ if name.endswith(".gz") else inputs.CSV
    place = f"sets/ctr/{name}"
    commands = (*PLANS, *PARTIES, reproduced("split-label-leakage"))
    return Kind(rows, place, commands, also(settings(f'{{kind = "criteo", path = "{place}"}}'), "sets/ctr"))


KINDS: dict[str, Kind] = {
    "plan": Kind({**inputs.TOML, **inputs.PLAN}, "plan.toml", PLANS),
    "party file": Kind(inputs.TOML, "party.toml", tuple(("split", role, "party.toml") for role in ROLES)),
    "policy": Kind(inputs.POLICY, "policy.toml", PLANS, settings('"digits"', POLICED)),
    "ranking": Kind(inputs.JSON, "layers.json", PLANS, settings('"digits"', GUARD)),
    "npz": Kind(
        inputs.NPZ,
        "sets/mnist/set.npz",
        commands_on("sets/mnist/set.npz", reproduced("class-keys")),
        also(settings('{kind = "npz", path = "sets/mnist/set.npz"}'), "sets/mnist"),
    ),
    "csv": Kind(inputs.CSV, "set.csv", commands_on("set.csv"), table("set.csv")),
    "csv.gz": Kind(inputs.CSV_GZ, "set.csv.gz", commands_on("set.csv.gz"), table("set.csv.gz")),
    "criteo": clicks("criteo_train.csv"),
    "criteo.gz": clicks("criteo_train.csv.gz"),
    "attributes": Kind(inputs.CSV, "sets/lfw/faces.csv", (*PLANS, *PARTIES), faces),
    "idx": Kind(
        inputs.IDX,
        "sets/mnist/train-images-idx3-ubyte",
        commands_on("sets/mnist", reproduced("class-keys")),
        other_idx,
    ),
    "idx.gz": Kind(
        inputs.IDX_GZ,
        "sets/mnist/train-images-idx3-ubyte.gz",
        commands_on("sets/mnist", reproduced("class-keys")),
        other_idx,
    ),
    "cifar": Kind(inputs.CIFAR, "sets/cifar10/data_batch_1.bin", commands_on("sets/cifar10"), cifar),
    "image": Kind(inputs.IMAGE, "pictures/a/1.png", commands_on("pictures"), pictures),
    "manifest": Kind(inputs.MANIFESTS, "seen/a.capture.json", (AUDITED,), captures),
    "message": Kind(inputs.SAFETENSORS, "seen/a.safetensors", (AUDITED,), captures),
    "parameters": Kind(inputs.SAFETENSORS, "seen/b.safetensors", (AUDITED,), captures),
    "truth": Kind(inputs.SAFETENSORS, "truth.safetensors", ((*AUDITED, "--truth", "truth.safetensors"),), captures),
    "checkpoint": Kind(
        {name: make for name, make in inputs.SAFETENSORS.items() if name != "a link to itself"},
        "party.safetensors",
        PARTIES,
        settings('"rare_digit"'),
    ),
    "key": Kind(inputs.PEM, "certificates/label-party/key.pem", PARTIES, certified),
    "store": Kind(
        inputs.STORE,
        "out/audit.sqlite",
        (("report", "out"), ("export", "out"), ("audit", "plan.toml", "--workers", "1", "--out", "out")),
        also(settings('"digits"'), "out"),
    ),
    "record": Kind(
        inputs.STORE_READ, "out/audit.sqlite", (("report", "out"), ("export", "out")), also(settings('"digits"'), "out")
    ),
    "journal": Kind(inputs.FILES, "p.search/journal.jsonl", (SEARCH,), also(settings('"digits"'), "p.search")),
}
CASES = [(kind, name) for kind, one in KINDS.items() for name in one.inputs]
UNNAMED = {"images that make a network of a billion parameters", "a record that is none"}
"""What is wrong with these is not a file's fault alone, so that the sentence speaks of something else."""
HARMLESS = {
    ("csv", "one label of 100,000 characters", "feature-party"),
    ("csv", "90,000 columns without a label", "feature-party"),
}
"""The feature party has no label, so that these are tables like any other to it."""


def case(kind: str, name: str) -> Any:
    return pytest.param(kind, name, id=f"{kind}: {name}")


def one_sentence(said: str) -> bool:
    """Whether an error is a line, or the faults of a file with a line each, short enough to be read."""
    lines = said.splitlines()
    listed = len(lines) > 1 and lines[0].endswith(":") and all(line.startswith("  ") for line in lines[1:])
    return (
        said.startswith("Error: ") and (len(lines) == 1 or listed) and len(lines) <= 52 and max(map(len, lines)) < 2500
    )


def test_there_are_forty_hostile_inputs_and_more() -> None:
    assert len({make for one in KINDS.values() for make in one.inputs.values()}) >= 40


@pytest.mark.parametrize(("kind", "name"), [case(kind, name) for kind, name in CASES])
def test_a_hostile_file_is_one_sentence(
    serve: Callable[..., dict[str, Any]], tmp_path: Path, kind: str, name: str
) -> None:
    one = KINDS[kind]
    one.prepare(tmp_path)
    place = tmp_path / one.place
    if place.is_symlink() or place.exists():
        place.unlink()
    one.inputs[name](place)
    for words in one.commands:
        if (kind, name, words[1]) in HARMLESS:
            continue
        told = serve(list(words), tmp_path)
        said = f"leaktight {' '.join(words)}\n{told}"
        assert told["code"] == 2, said
        assert "Traceback" not in told["err"], said
        assert one_sentence(told["err"]), said
        assert told["err"].replace("\n", "").isprintable(), said
        assert name in UNNAMED or place.name in told["err"] or place.parent.name in told["err"], said
        assert told["peak"] < MOST_MEMORY, said
        assert told["seconds"] < MOST_SECONDS, said


@pytest.mark.parametrize(
    ("kind", "name"), [("plan", "a named pipe"), ("npz", "4 GB from 4 MB"), ("csv.gz", "4 GB of rows")]
)
def test_a_process_of_its_own_says_the_same(tmp_path: Path, kind: str, name: str) -> None:
    one = KINDS[kind]
    one.prepare(tmp_path)
    (tmp_path / one.place).unlink(missing_ok=True)
    one.inputs[name](tmp_path / one.place)
    # The peak of a process counts from the fork on, when it is as large as its parent: so a small parent measures it.
    measure = "import os, subprocess, sys; p = subprocess.Popen(sys.argv[1:]); _, status, used = os.wait4(p.pid, 0); "
    measure += "print(os.waitstatus_to_exitcode(status), used.ru_maxrss, used.ru_utime + used.ru_stime)"
    command = [sys.executable, "-c", measure, sys.executable, "-m", "leaktight.cli", *one.commands[0]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    code, peak, seconds = done.stdout.split()[-3:]
    assert int(code) == 2, done.stderr
    assert one_sentence(done.stderr), done.stderr
    assert int(peak) << 10 < MOST_MEMORY
    assert float(seconds) < MOST_SECONDS


def test_what_lies_beside_captures_is_left_alone(serve: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    captures(tmp_path)
    inputs.sparse(200 * 10**9)(tmp_path / "seen" / "backup.img")
    inputs.pipe(tmp_path / "seen" / "pipe")
    told = serve([*AUDITED], tmp_path)
    assert told["code"] == 0, told
    assert told["peak"] < MOST_MEMORY
