"""`leaktight layers`: one command from a file with a label and a property column to a ranking."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from leaktight.cli.layer_table import show
from leaktight.cli.main import main
from leaktight.core.metric import Reading
from leaktight.core.random import stream
from leaktight.findings.layer_risk import LayerRow
from leaktight.running.store import Store

FEW = ["--rounds", "10", "--messages", "12", "--gradients", "40", "--batch-size", "8", "--workers", "1"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of people: income is learned, sex shows in their height."""
    import torch

    rng = stream(0, "people")
    sex = torch.randint(2, (300,), generator=rng)
    height = sex + 0.3 * torch.randn(300, generator=rng)
    hours = torch.randn(300, generator=rng)
    rows = [
        f"{h:.3f},{w:.3f},{'f' if s else 'm'},{int(w > 0)}"
        for h, w, s in zip(height.tolist(), hours.tolist(), sex.tolist(), strict=True)
    ]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["height,hours,sex,income", *rows]) + "\n")
    return path


@pytest.mark.long
def test_one_command_gives_table_ranking_and_picture(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["layers", "--data", f"{table}:income", "--property", "sex", "--model", "mlp", "--victims", "2"]
    assert main([*command, *FEW, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "body.linear1" in said
    assert "property AUC" in said
    found = json.loads((out / "layers.json").read_text())
    assert [one["layer"] for one in found["layers"]] == ["body.linear1", "head"]
    assert set(found["ranking"]) == {"property", "labels"}  # of rows of a table there is no picture
    page = (out / "layers.html").read_text()
    assert "Where the leak sits" in page
    assert "plot-layers" in page
    before = seconds(out)
    assert main([*command, *FEW, "--out", str(out)]) == 0
    assert capsys.readouterr().out == said
    assert seconds(out) == before  # nothing is measured twice
    assert main([*command, *FEW, "--out", str(out), "--json", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ((out / "layers.json").read_text(), "")
    assert main([*command, *FEW, "--out", str(out), "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("For the property: ")
    assert "have the property `sex" in lines[0]
    assert lines[-1] == f"Report: {out / 'layers.html'}"


@pytest.mark.long
def test_a_table_without_header_is_read_as_downloaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As UCI hands tables out: no header, blanks after commas, `?` for what is missing, and several words in a column."""
    rng = stream(0, "raw")
    import torch

    numbers = torch.randint(0, 3, (240, 3), generator=rng).tolist()
    lines = [
        f"{a}, {['cook', 'nurse', 'clerk'][b]}, {'?' if c == 2 else c}, {'>50K' if a else '<=50K'}"
        for a, b, c in numbers
    ]
    path, out = tmp_path / "people.data", tmp_path / "out"
    path.write_text("\n".join(lines) + "\n")
    names = ["--data", f"{path}:income", "--columns", "hours,job,code,income", "--missing", "fill"]
    asked = ["--property", "job", "--property-positive", "nurse", "--matched-labels", "--share", "0.5"]
    assert main(["layers", *names, *asked, *FEW, "--out", str(out)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "have the property `job: nurse`" in said
    assert "a share of 0.5 of its examples have what is asked for" in said
    assert "Batches of both kinds have labels alike." in said
    assert "What the other layers tell of the property once layers are sealed" in said
    found = json.loads((out / "layers.json").read_text())
    assert found["ranking"]["property"] == [step["layer"] for step in found["sealing"]["property"]]
    assert len(found["about"]) == 4
    assert "plot-sealing" in (out / "layers.html").read_text()


def seconds(out: Path) -> list[float]:
    """How long each cell took: what was measured anew has another number."""
    with Store.read(out / "inference") as store:
        return [record.seconds for record in store.records()]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "photos", "--property", "sex"], "The data `photos` has no `property` to choose"),
        (
            ["--data", "photos", "--label", "sex"],
            "The data `photos` has no `label` to choose. `--label` needs a .csv file",
        ),
        (["--data", "nothing.csv:income"], "There is no file or folder `nothing.csv`"),
        (["--rounds", "0"], "rounds"),
        (["--messages", "2"], "messages"),
        (["--model", "mpl"], "Did you mean `mlp`"),
    ],
)
def test_wrong_words_are_one_clear_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["layers", *arguments, "--out", str(tmp_path / "out")]) != 0
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


def test_a_property_that_is_not_there_is_named(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "layers",
        "--data",
        f"{table}:income",
        "--property",
        "sexx",
        "--model",
        "mlp",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(command) != 0
    assert "sexx" in capsys.readouterr().err


def printed(rows: list[LayerRow]) -> str:
    text = StringIO()
    show(rows, Console(file=text, width=200))
    return text.getvalue()


def row(layer: str, name: str, value: float, low: float, chance: float) -> LayerRow:
    reading = Reading(name=name, value=value, low=low, high=value + 0.05, chance=chance, leaks="high", layer=layer)
    return LayerRow(layer, {name: reading})


def test_layers_that_tell_nothing_are_not_named_as_risks() -> None:
    said = printed([row("head", "property_auc", 0.52, 0.4, 0.5)])
    assert "For the property: No layer by itself tells whether" in said
    assert "By itself" not in said
    two = [row("head", "property_auc", 0.9, 0.8, 0.5), row("body", "property_auc", 0.51, 0.4, 0.5)]
    assert "For the property: By itself head best tells" in printed(two)
    assert "For the labels: By itself head best tells" in printed([row("head", "label_auc", 0.9, 0.8, 0.5)])
    assert "0.90 (0.80 to 0.95)" in printed([row("head", "property_auc", 0.9, 0.8, 0.5)])


@pytest.mark.parametrize("width", [60, 80])
def test_no_word_is_broken_on_a_narrow_terminal(width: int) -> None:
    rows = [
        LayerRow(
            f"body.block{number}.convolution",
            {
                name: Reading(name=name, value=0.9 - number / 10, low=0.5, high=0.95, chance=0.5, leaks="high")
                for name in ("property_auc", "label_auc", "v_information_share", "sensitivity_f_share", "psnr")
            },
        )
        for number in range(5)
    ]
    text = StringIO()
    show(rows, Console(file=text, force_terminal=True, width=width, color_system=None))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    for row in rows:
        assert row.layer in words
    assert "so hiding one layer may hide nothing." in words
    assert "…" not in words
    pairs = [line for line in lines if line.startswith("- ")]
    assert len(pairs) <= 4
