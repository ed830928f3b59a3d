"""Real processes on loopback, with TLS: either party is killed in the middle, and the model is as if nothing had happened."""

import os
import signal
import time
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.learning.checkpoint import read_checkpoint

ROLES = ("label-party", "feature-party")
ROUNDS = 700


def toml(table, prefix=""):
    """Write nested settings as TOML."""
    plain = {name: value for name, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{prefix}]"] if prefix else []
    lines += [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}" for name, value in plain.items()
    ]
    nested = [toml(value, f"{prefix}.{name}".lstrip(".")) for name, value in table.items() if isinstance(value, dict)]
    return "\n".join([*lines, *nested])


@pytest.fixture
def files(pair, certificates):
    """Both parties' files, with certificates."""
    paths = {}
    for role, document in pair.documents.items():
        document["scenario"]["rounds"] = ROUNDS
        document["wire"] |= {"insecure": False, "certificates": str(certificates[role].key.parent), "patience": 140.0}
        paths[role] = pair.folder / f"{role}.toml"
        paths[role].write_text(toml(document))
    return paths


def step_of(path: Path) -> int:
    """Return the step of a checkpoint, or -1 as long as there is none."""
    try:
        return int(read_checkpoint(path)["party"]["step"])
    except InvalidValue:
        return -1


def wait_for(path: Path, step: int, *processes) -> None:
    end = time.monotonic() + 140
    while step_of(path) < step:
        for process in processes:
            assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"{path} stays at step {step_of(path)}"
        time.sleep(0.02)


def killed(process) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long
def test_either_party_is_killed_and_the_model_is_as_if_nothing_had_happened(
    pair, files, processes, tables, identical, in_one
):
    start = {role: lambda role=role: processes("split", role, files[role]) for role in ROLES}
    label, feature = start["label-party"](), start["feature-party"]()
    wait_for(pair.checkpoint("label-party"), 100, label, feature)
    killed(label)
    assert step_of(pair.checkpoint("label-party")) < ROUNDS
    label = start["label-party"]()
    wait_for(pair.checkpoint("feature-party"), 350, label, feature)
    killed(feature)
    assert step_of(pair.checkpoint("feature-party")) < ROUNDS
    ended = {"label-party": label, "feature-party": start["feature-party"]()}
    said = {role: process.communicate(timeout=140) for role, process in ended.items()}
    assert [process.returncode for process in ended.values()] == [0, 0], said
    reference = in_one(tables, ROUNDS)
    assert pair.state("label-party")["losses"].tolist() == reference.losses
    for role in ROLES:
        assert identical(pair.state(role)["party"], reference.states[role])
        assert "from step " in said[role][1]
    assert f"Test AUC: {reference.utility[0].value:.4f}" in said["label-party"][0]
    assert "Test AUC" not in said["feature-party"][0]


def test_an_interrupted_party_says_how_to_go_on_and_leaves_nothing_running(pair, files, processes):
    label = processes("split", "label-party", files["label-party"])
    assert label.stderr.readline().startswith("Waiting for feature-party at 127.0.0.1:")
    label.send_signal(signal.SIGINT)
    _, error = label.communicate(timeout=30)
    assert label.returncode == 130
    assert error == "Interrupted: checkpoints are kept; run the same command to resume.\n"
