"""`leaktight search`: one command to a policy; killed in the middle, the same command resumes. Real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from leaktight.cli.main import main
from leaktight.cli.policy_result import UNVERIFIED, as_json, show, words_of
from leaktight.core.metric import Reading
from leaktight.data import Photos
from leaktight.models import DLNet
from leaktight.search import Result, Search, Verification
from leaktight.search.prediction import read_prediction
from leaktight.search.result import Scored
from leaktight.search.verification import Attacked
from leaktight.transforms import Policy

FEW = [
    "search",
    "--data",
    "digits",
    "--model",
    "mlp",
    "--images",
    "16",
    "--candidates",
    "12",
    "--epochs",
    "1",
    "--threshold",
    "3",
    "--trained",
    "2",
    "--steps",
    "20",
    "--loss",
    "1",
]


def test_one_command_says_policy_scores_and_how_to_use_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "policy.toml"
    assert main([*FEW, "--workers", "1", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("Took ")
    policy = tomllib.loads(out.read_text())["policy"]
    assert said.out.startswith(f"Policy {policy}: {Policy.of(policy).words}.\n")
    assert "12 candidates drawn; " in said.out
    assert str(read_prediction()) in said.out
    assert f"Eight images before and after it: {tmp_path / 'policy.png'}" in said.out
    assert re.search(r" %; (none seen|\d+\.\d( gained)?) \(-?\d+\.\d to \d+\.\d\)\n", said.out)
    for one in [*policy.split("+"), "as it is"]:
        assert any(line.startswith(f"{one} ") for line in said.out.splitlines())
    snippet = said.out.partition("[[defences]]")[2].partition("In PyTorch")[0]
    assert tomllib.loads(snippet) == {"kind": "transformation", "file": str(out)}
    assert f'transform = Policy.of("{policy}").transform()' in said.out
    assert Policy.of(policy).transform() is not None
    assert main([*FEW, "--workers", "1", "--out", str(out)]) == 0
    assert capsys.readouterr().out == said.out
    assert main([*FEW, "--workers", "1", "--out", str(out), "--json", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = json.loads(printed.out)
    assert (found["policy"], found["words"]) == (policy, Policy.of(policy).words)
    assert found["untransformed"]["relative_accuracy"] == 1
    assert main([*FEW, "--workers", "1", "--out", str(out), "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"Policy {policy}: {Policy.of(policy).words}", f"Written to {out}"]
    assert lines[-1] == UNVERIFIED
    with Image.open(tmp_path / "policy.png") as sheet:
        assert sheet.size == (8 * 68 + 4, 2 * 68 + 4)
        above, below = sheet.crop((4, 4, 68, 68)), sheet.crop((4, 72, 68, 136))
        assert above.tobytes() != below.tobytes()


@pytest.mark.parametrize("width", [60, 80])
def test_what_is_known_of_scores_is_said_and_what_attacks_found_comes_last(width: int) -> None:
    settings = Search(data=Photos(), model=DLNet(), candidates=12, policies=3)
    scored = (
        Scored("4-21-45", 0.9, (0.8, 1.0), -47.3243, 0.61, 0.021, (-0.012, 0.054)),
        Scored("23-48-24", 0.8, (0.7, 0.9), -50.0, 0.6, 0.031, (None, None)),
    )
    doubt = "The accuracy score says little here: it passed all of 22 random policies."
    result = Result(settings, scored, Scored("", 0.95, (0.9, 1.0), -45.0, 0.631), 24, 22, 7, 6, 500, 5, (doubt,))
    text = StringIO()
    show(result, Path("policy.toml"), Console(file=text, force_terminal=True, width=width, color_system=None))
    shown = text.getvalue()
    said = " ".join(shown.split())
    assert said.startswith(
        "Policy 4-21-45+23-48-24: sharpness (level 1), move sideways (level 5), solarize (level 1); or autocontrast, "
        "move up or down (level 3), move up or down (level 3)."
    )
    assert "24 candidates drawn (12, and more because too few would do); 22 do different things" in said
    assert " 1.05" in shown
    assert "-47" not in shown
    assert said.endswith(UNVERIFIED)
    assert "3 policies were asked for; no other is more private than images as they are" in said
    assert doubt in said
    assert str(read_prediction()) in said
    assert max(map(len, shown.splitlines())) <= width
    psnr = Reading(name="psnr", value=21.5, low=20.0, high=23.0, chance=14.0, leaks="high")
    found = Verification(
        (Attacked("initial", 24.0, psnr, 14.0, 2.5, (1.0, 4.0)),),
        0.61,
        0.65,
        Reading(name="accuracy_loss", value=0.04, low=0.02, high=0.06),
        ("It broke.",),
    )
    words = words_of(result, Path("policy.toml"), found)
    assert words[-4:] == [
        "Attacked before the training: PSNR 24.0 dB without the policy, 21.5 with it, 14.0 by the best answer that needs "
        "no message. It hides 2.5 dB (1.0 to 4.0). Images are still rebuilt.",
        "The price: 4.0 points of accuracy (95 % interval 2.0 to 6.0); accuracy 65.0 % without, 61.0 % with the policy.",
        "Not measured: It broke.",
        "All of it: leaktight report policy.verified",
    ]
    told = json.loads(as_json(result, Path("policy.toml"), found))
    assert told["doubts"] == [doubt]
    assert told["prediction"]["interval"][0] < told["prediction"]["r"] < told["prediction"]["interval"][1]
    assert told["verification"]["attacked"][0]["rebuilt"] is True
    assert told["verification"]["accuracy_lost_interval"] == [0.02, 0.06]
    assert json.loads(as_json(result, Path("policy.toml")))["verification"] is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--library", "3,50"], "The `library` of Search must be made of indices in 0..49. Got 50 instead."),
        (["--library", "3;1"], "The `--library` must be indices of functions, as 3,1,7. Got '3;1' instead."),
        (["--library", "9" * 5000], "The `--library` must be indices of functions, as 3,1,7."),
        (["--functions", "99"], "The `functions` of Search must be at most 6. Got 99 instead."),
        (["--data", "nothing.npz"], "There is no file or folder `nothing.npz`"),
        (["--data", "parity", "--model", "convent"], "Did you mean `convnet`"),
        (["--images", "100000"], "The `images` of a search must be at most"),
        (["--workers", "0"], "The `workers` of a search must be at least 1"),
        (["--method", "hope"], "hope"),
    ],
)
def test_wrong_words_are_one_clear_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*FEW, *arguments, "--out", str(tmp_path / "policy.toml")]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said
    assert not (tmp_path / "policy.toml").exists()


def test_a_table_is_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("a,b,label\n" + "\n".join(f"{n},{n * n},{n % 2}" for n in range(50)) + "\n")
    assert main([*FEW, "--data", f"{tmp_path / 'rows.csv'}:label", "--out", str(tmp_path / "policy.toml")]) == 2
    assert "A transformation needs images of shape (n, 1 or 3, height, width)." in capsys.readouterr().err


SLOW = [
    "--data",
    "photos",
    "--model",
    "dlnet",
    "--candidates",
    "10",
    "--images",
    "8",
    "--epochs",
    "0",
    "--threshold",
    "100",
    "--trained",
    "0",
]


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(launch: Start) -> Start:
    """Return what starts a search in a folder, as a session of its own."""
    command = [sys.executable, "-m", "leaktight.cli", "search", *SLOW, "--workers"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return lambda folder, workers: launch([*command, str(workers)], cwd=folder, start_new_session=True, **pipes)


def wait_for(count: int, folder: Path, seconds: float = 90) -> bytes:
    """Wait until the journal has so many whole lines, and return them."""
    journal = folder / "policy.search" / "journal.jsonl"
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        held = journal.read_bytes() if journal.exists() else b""
        if held.count(b"\n") >= count:
            return held[: held.rindex(b"\n") + 1]
        time.sleep(0.01)
    raise AssertionError(f"fewer than {count} scores in {seconds} s")


@pytest.mark.long
def test_killed_and_interrupted_it_goes_on_and_finds_the_same(start: Start, tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    whole.mkdir()
    stopped.mkdir()
    first = start(stopped, 1)
    kept = wait_for(4, stopped)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    assert not (stopped / "policy.toml").exists()

    second = start(stopped, 2)
    wait_for(kept.count(b"\n") + 2, stopped)
    # A terminal sends Ctrl-C to every process of the command.
    os.killpg(second.pid, signal.SIGINT)
    _, said = second.communicate()
    if second.returncode != 0:
        assert second.returncode == 130
        assert said.endswith("Interrupted: finished scores are kept; run the same command to resume.\n")

    third = start(stopped, 1)
    shown, said = third.communicate()
    assert third.returncode == 0
    assert said.startswith("Search: 10 candidates of at most 3 functions, scored on 8 images of photos; 1 worker.\n")
    assert shown.startswith("Policy ")
    assert main(["search", *SLOW, "--workers", "1", "--out", str(whole / "policy.toml")]) == 0
    assert (stopped / "policy.toml").read_bytes() == (whole / "policy.toml").read_bytes()
    journal = (stopped / "policy.search" / "journal.jsonl").read_bytes()
    assert journal.startswith(kept)
    assert sorted(journal.splitlines()) == sorted((whole / "policy.search" / "journal.jsonl").read_bytes().splitlines())
