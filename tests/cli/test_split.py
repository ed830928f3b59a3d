"""`leaktight split` and `leaktight certificates`: thin, quiet where nobody watches, one sentence for a fault."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from leaktight.cli.main import main
from leaktight.cli.step_bar import StepBar, describe, summary
from leaktight.core.metric import Reading

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from leaktight.wire import PartyProgress, PartyResult

Call = Callable[..., Any]
PROGRESS = PartyProgress(5, 10, 0.25, 4_000_000, 8_000_000, 2.0, 0.0031)


@pytest.fixture
def files(leaktight: Call, tmp_path: Path) -> dict[str, Path]:
    """Both parties' files as `init` writes them, made short and given a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = {}
    for role in ("label-party", "feature-party"):
        said = leaktight("init", "--scenario", role, f"{role}.toml")
        assert said.out == f"Wrote {role}.toml. Run it with `leaktight split {role} {role}.toml`.\n"
        found[role] = tmp_path / f"{role}.toml"
        text = found[role].read_text().replace("rounds = 400", "rounds = 6").replace(":7443", f":{port}")
        found[role].write_text(text.replace("patience = 600", "patience = 20"))
    return found


def test_the_commands_of_the_readme_train_from_nothing(leaktight: Call, files: dict[str, Path], tmp_path: Path) -> None:
    said = leaktight("certificates", "certificates", "--host", "labels.example")
    assert said.code == 0
    assert "Wrote certificates/label-party: give it to label-party" in said.out
    codes: list[int] = []
    other = threading.Thread(target=lambda: codes.append(main(["split", "feature-party", str(files["feature-party"])])))
    other.start()
    said = leaktight("split", "label-party", str(files["label-party"]))
    other.join(30)
    assert (said.code, codes) == (0, [0])
    assert "Done: 6 steps; " in said.out
    assert "Test AUC: " in said.out
    assert "label-party.model.safetensors (for its owner alone)" in said.out
    # Two sentences, and no bar, as nobody watches.
    assert sorted(line.split(" ")[0] for line in said.err.splitlines()) == ["Connecting", "Waiting"]


def test_faults_are_one_sentence_and_exit_code_2(leaktight: Call, files: dict[str, Path]) -> None:
    said = leaktight("split", "label-party", str(files["label-party"]))
    assert said.code == 2
    assert said.err.splitlines()[-1].startswith(
        "Error: The file `certificates/label-party/authority.pem` cannot be read: no such file"
    )
    leaktight("certificates", "certificates")
    said = leaktight("certificates", "certificates")
    assert said.code == 2
    assert said.err.startswith("Error: There is a `certificates/label-party` already.")
    assert leaktight("split", "label-party", "none.toml").err.startswith("Error: There is no file `none.toml`.")
    assert leaktight("split", "server", "none.toml").code == 2


def test_without_grpc_one_sentence_says_what_to_install(
    leaktight: Call, files: dict[str, Path], monkeypatch: Any
) -> None:
    leaktight("certificates", "certificates")
    monkeypatch.setitem(__import__("sys").modules, "grpc", None)
    said = leaktight("split", "feature-party", str(files["feature-party"]))
    assert said.code == 2
    assert said.err == (
        "Error: Split learning between machines needs the package `grpcio`. Install it with "
        "`pip install leaktight[wire]`.\n"
    )


def test_certificates_for_others(leaktight: Call, tmp_path: Path) -> None:
    assert leaktight("certificates", "made", "--name", "superlink", "--days", "3").code == 0
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["superlink"]


def test_the_progress_shows_loss_bandwidth_and_response_time() -> None:
    assert describe(PROGRESS) == "loss 0.25, 2.0 MB/s out, 4.0 MB/s in, response time 3.1 ms"
    assert describe(PartyProgress(0, 10, None, 0, 0, 0.0, None)) == "0.0 MB/s out, 0.0 MB/s in"


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar_shows_on_a_terminal_only_and_sentences_always(terminal: bool) -> None:
    out = io.StringIO()
    with StepBar(Console(file=out, force_terminal=terminal, width=200)) as bar:
        bar.step(PROGRESS)
        bar.tell("Something [bold]happened[/bold].")
    assert ("response time 3.1 ms" in out.getvalue()) == terminal
    assert ("5/10" in out.getvalue()) == terminal
    assert "Something [bold]happened[/bold]." in out.getvalue()


def test_the_summary_names_what_was_measured() -> None:
    reading = Reading(name="auc", value=0.9, low=0.8, high=1.0, n=40)
    shown = summary(PartyResult(60, (reading,), 1_500_000, 2_000_000, 3.25, Path("a.safetensors")))
    assert shown.splitlines() == [
        "Done: 60 steps; 1.5 MB out, 2.0 MB in, 3.2 s.",
        "Test AUC: 0.9000 (0.8000 to 1.0000)",
        "This party's half of the model: a.safetensors (for its owner alone)",
    ]
