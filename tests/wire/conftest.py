"""Two parties with tables of their own, and the same training in one process to compare with."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import json
import os
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from leaktight.core.certificates import make_certificates
from leaktight.core.defence import Undefended, bind_key
from leaktight.core.local import Local
from leaktight.core.scenario import flatten
from leaktight.core.secure import SecretKey
from leaktight.data import Csv
from leaktight.defences import IsotropicNoise
from leaktight.learning import Adam, Split
from leaktight.learning.checkpoint import read_checkpoint
from leaktight.learning.exchange import play
from leaktight.models import WideDeep
from leaktight.wire import parse_party_file, take_part
from leaktight.wire.feature_side import FeatureSide
from leaktight.wire.label_side import LabelSide

if not all(map(importlib.util.find_spec, ("grpc", "cryptography"))):
    collect_ignore_glob = ["test_*.py"]

ROUNDS, BATCH = 60, 16
KEY = SecretKey(bytes(range(32)))
ROLES = ("label-party", "feature-party")
FEATURES, OWN = ["x1", "x2", "x3", "job"], ["w1", "w2"]


def people(count: int, seed: int) -> list[dict[str, object]]:
    rng = random.Random(seed)  # noqa: S311
    rows = []
    for number in range(count):
        row = {
            "person": f"p{number:04}",
            **{name: round(rng.gauss(0, 1), 4) for name in ("x1", "x2", "x3", "w1", "w2")},
        }
        row["job"] = rng.choice(["cook", "clerk", "pilot"])
        row["bought"] = "yes" if row["x1"] + row["w1"] + rng.gauss(0, 0.5) > 0.8 else "no"
        rows.append(row)
    return rows


def write(path: Path, rows: list[dict[str, object]], names: list[str]) -> str:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, names, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    return str(path)


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> Path:
    """Each party's rows in an order of its own, and all of it in the order of ids."""
    folder = tmp_path_factory.mktemp("tables")
    for part, rows in (("train", people(120, 0)), ("test", people(40, 1))):
        write(folder / f"whole-{part}.csv", rows, ["person", *FEATURES, *OWN, "bought"])
        for seed, (name, columns) in enumerate({"features": FEATURES, "labels": [*OWN, "bought"]}.items()):
            mixed = random.Random(seed).sample(rows, len(rows))  # noqa: S311
            write(folder / f"{name}-{part}.csv", mixed, ["person", *columns])
    return folder


@dataclasses.dataclass
class Reference:
    """A training run in one process: the loss of each step, and each party's final state."""

    losses: list[float]
    states: dict[str, dict]
    utility: tuple


def with_key(split: Split, data, defence):
    """Return both parties in one process, with the key that parties over the wire have in these tests."""
    feature, label = split.parties(data, defence, seed=0)

    def local(role: str, own) -> Local:
        return Local(role, seed=0, key=bind_key(KEY, role, own))

    bottom, top = split.halves(data, KEY).bottom, split.halves(data, KEY).top
    feature = dataclasses.replace(feature, bottom=bottom, local=local(feature.name, feature.defence))
    return feature, dataclasses.replace(label, top=top, local=local(label.name, defence))


def in_one_process(tables: Path, defence=None, rounds: int = ROUNDS) -> Reference:
    split = Split(
        data=Csv(
            path=tables / "whole-train.csv",
            test_path=tables / "whole-test.csv",
            label="bought",
            ignore=("person",),
            words="ids",
        ),
        model=WideDeep(hidden=(8, 6)),
        label_party=("w*",),
        optimiser=Adam(learning_rate=0.01),
        rounds=rounds,
        batch_size=BATCH,
    )
    data = split.data.load()
    feature, label = with_key(split, data, defence or Undefended())
    losses = []
    play(feature, label, label.opening(), rounds, lambda *_: losses.append(label.last.loss.item()))
    states = {party.name: party.state() for party in (feature, label)}
    return Reference(losses, states, split.utility(feature, label, data))


@pytest.fixture(scope="session")
def reference(tables) -> Reference:
    return in_one_process(tables, IsotropicNoise(ratio=0.5))


@pytest.fixture(scope="session")
def keyed():
    """Return the maker of both parties in one process."""
    return with_key


@pytest.fixture(scope="session")
def in_one():
    """Return the maker of such a training run of any length."""
    return lambda tables, rounds: in_one_process(tables, IsotropicNoise(ratio=0.5), rounds)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"), ROLES)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@dataclasses.dataclass
class Pair:
    """Both parties' documents; a test changes them before they run."""

    folder: Path
    documents: dict[str, dict]

    @property
    def label(self) -> dict:
        return self.documents["label-party"]

    @property
    def feature(self) -> dict:
        return self.documents["feature-party"]

    def checkpoint(self, role: str) -> Path:
        return Path(self.documents[role]["wire"]["checkpoint"])

    def state(self, role: str) -> dict:
        return read_checkpoint(self.checkpoint(role))

    def keys(self, role: str) -> list:
        """Return the steps and keys in a party's checkpoint."""
        return json.loads(bytes(self.state(role)["keys"].tolist()))

    def start(self, role: str) -> Running:
        return Running(role, parse_party_file(self.documents[role]))

    def run(self) -> dict[str, Running]:
        """Run both to their ends."""
        both = {role: self.start(role) for role in ROLES}
        for party in both.values():
            party.join()
        return both


class Running(threading.Thread):
    """A party in a thread: its sentences, and how it ended."""

    def __init__(self, role, settings):
        super().__init__(daemon=True)
        self.role, self.settings = role, settings
        self.sentences, self.progress = [], []
        self.outcome = self.error = None
        self.start()

    def run(self):
        try:
            self.outcome = take_part(self.role, self.settings, self.sentences.append, self.progress.append)
        except Exception as error:
            self.error = error

    def join(self, timeout=60.0):
        super().join(timeout)
        assert not self.is_alive(), f"{self.role} hangs after {self.sentences}"

    def result(self):
        self.join()
        assert self.error is None, self.error
        return self.outcome


def documents_of(tables: Path, folder: Path, port: int) -> dict[str, dict]:
    """Return both parties' documents, over loopback without TLS; the label party listens, and defends itself."""
    documents = {}
    for role, name, address in (("label-party", "labels", "listen"), ("feature-party", "features", "connect")):
        documents[role] = {
            "scenario": {
                "model": {"kind": "wide_deep", "hidden": [8, 6]},
                "optimiser": {"kind": "adam", "learning_rate": 0.01},
                "rounds": ROUNDS,
                "batch_size": BATCH,
                "data": {
                    "kind": "party_table",
                    "path": str(tables / f"{name}-train.csv"),
                    "test_path": str(tables / f"{name}-test.csv"),
                    "id": "person",
                    "words": "ids",
                },
            },
            "wire": {
                address: f"127.0.0.1:{port}",
                "insecure": True,
                "checkpoint": str(folder / f"{role}.safetensors"),
                "every": 10,
                "heartbeat": 0.5,
                "timeout": 10.0,
                "patience": 30.0,
            },
        }
    documents["label-party"]["scenario"]["data"]["label"] = "bought"
    documents["label-party"]["defence"] = {"kind": "isotropic_noise", "ratio": 0.5}
    return documents


@pytest.fixture
def known_keys(monkeypatch):
    """Give every new party of this process the key of the reference."""
    monkeypatch.setattr(SecretKey, "new", classmethod(lambda cls: KEY))


@pytest.fixture
def pair(known_keys, tables, tmp_path, port) -> Pair:
    """Return two parties that have not begun."""
    return Pair(tmp_path, documents_of(tables, tmp_path, port))


@pytest.fixture(scope="session")
def sides(tables, tmp_path_factory):
    """Return both sides, without a transport."""
    settings = documents_of(tables, tmp_path_factory.mktemp("sides"), 1)
    label = LabelSide(parse_party_file(settings["label-party"]))
    yield label, FeatureSide(parse_party_file(settings["feature-party"]))
    label.close()


def same(one: dict, other: dict) -> bool:
    """Whether two nested states have the same names and the same bits; a scope without anything in it is none."""
    ours, theirs = flatten(one), flatten(other)
    pairs = [(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()]
    return ours.keys() == theirs.keys() and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs
    )


@pytest.fixture(scope="session")
def identical():
    return same


@pytest.fixture
def processes(launch, tmp_path_factory):
    """Start processes of the command line, which draw the key of the reference; whatever still runs at the end is ended."""
    started, folder = [], tmp_path_factory.mktemp("known")
    (folder / "sitecustomize.py").write_text(
        "import secrets\nsecrets.token_bytes = lambda count: bytes(range(count))\n"
    )
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))

    def start(*arguments: object, **named) -> subprocess.Popen:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
        command = [sys.executable, "-m", "leaktight.cli", *map(str, arguments)]
        process = launch(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **named)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
