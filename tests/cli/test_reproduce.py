"""`leaktight reproduce`, with a paper that takes a moment; the papers' own experiments have tests of their own."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from leaktight.cli.comparison_table import parts, show
from leaktight.cli.main import main
from leaktight.core.metric import Reading
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.papers import PAPERS, Experiment, Order, Paper, Records, Reproduction, Row
from leaktight.papers.check import above
from leaktight.papers.paper import Plans
from leaktight.papers.row import claims, columns
from leaktight.plans import Grid, Plan
from leaktight.probes import Utility


def plans(order: Order) -> Plans:
    scenario = Federated(data=Digits(), model=MLP(), participants=2, rounds=1)
    grid = Grid(victims=1, seeds=(order.seed,))
    defences = (GaussianNoise(std=1.0),)
    return {"one": Plan(scenarios={"1": scenario}, defences=defences, probes={"utility": Utility()}, grid=grid)}


def rows(order: Order, records: Records) -> list[Row]:
    return [
        {"defence": record.cell.defence.kind, **columns("accuracy", record.reading("accuracy"))}
        for record in records.where("one")
    ]


TOY = Paper(
    name="toy",
    title="A toy [1]",
    setup=lambda order: order,
    experiments=(
        Experiment(
            table="accuracy",
            keys=("defence",),
            plans=plans,
            rows=rows,
            published=[{"defence": "none", "accuracy": 0.987}],
            checks=lambda rows: [above("a claim [2]", 1.0, least=0), above("another", None, least=0)],
        ),
        Experiment(
            table="figure",
            keys=("defence",),
            rows=lambda order, records: [{"defence": "none", "value": 1}],
            published=claims(("It hurts.", "Fig. 1")),
        ),
    ),
)
"""One training run with noise and one without."""


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAPERS, "toy", TOY)


@pytest.mark.usefixtures("toy")
def test_ours_stand_beside_the_published_and_then_come_the_checks(leaktight: Callable[..., Any]) -> None:
    said = leaktight("reproduce", "toy", "--workers", "1")
    assert (said.code, said.err) == (0, "")
    [line] = [line for line in said.out.splitlines() if "none" in line and "0.987" in line]
    assert " to " in line
    assert "A toy [1], scale smoke, seed 0" in said.out
    assert "Published: It hurts. (Fig. 1)" in said.out
    assert "- holds: a claim [2] is 1, expected above 0" in said.out
    assert "- does not hold: another is -, expected above 0" in said.out
    assert said.out.index("Published") < said.out.index("Checks:")
    assert Path("leaktight-toy-smoke", "one", "audit.sqlite").is_file()


@pytest.mark.usefixtures("toy")
def test_the_file_has_exactly_the_promised_keys(leaktight: Callable[..., Any]) -> None:
    said = leaktight(
        "reproduce", "toy", "--workers", "1", "--json", "ours.json", "--seed", "4", "--out", "work", "--steps", "1"
    )
    assert said.code == 0
    assert "Written: ours.json" in said.out
    assert "Cut by --steps 1: at most 1 of everything that is counted." in said.out
    found = json.loads(Path("ours.json").read_text())
    assert list(found) == ["paper", "scale", "seed", "seconds", "tables", "published", "checks", "remarks"]
    [remark] = found["remarks"]
    assert remark.startswith("Cut by --steps 1: ")
    assert (found["paper"], found["scale"], found["seed"]) == ("toy", "smoke", 4)
    assert [set(check) for check in found["checks"]] == [
        {"name", "value", "expected", "holds", "low", "high", "undecided"}
    ] * 2
    assert [row["defence"] for row in found["tables"]["accuracy"]] == ["none", "gaussian_noise"]
    assert stat.S_IMODE(Path("ours.json").stat().st_mode) == 0o600
    assert Path("work", "one").is_dir()


@pytest.mark.usefixtures("toy")
def test_what_fails_is_told_and_is_the_exit_code(
    leaktight: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("No luck")

    monkeypatch.setattr(Federated, "train", fail)
    said = leaktight("reproduce", "toy", "--workers", "1")
    assert said.code == 1
    assert "Failed: " in said.err
    assert "No luck" in said.err
    assert "Checks:" in said.out


@pytest.mark.usefixtures("toy")
def test_an_interruption_keeps_what_is_finished(leaktight: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Federated, "train", interrupt)
    said = leaktight("reproduce", "toy", "--workers", "1")
    assert said.code == 130
    assert said.err == "Interrupted: finished cells are kept; run the same command to resume.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("polarisation-network",),
            "There is no paper named `polarisation-network`. Did you mean `polarization-network`?",
        ),
        (
            ("polarization-network", "--scale", "small"),
            "The scale `small` needs real data sets. Name their folder with `--data`.",
        ),
        (
            ("polarization-network", "--scale", "paper"),
            "The scale `paper` needs real data sets. Name their folder with `--data`.",
        ),
        (
            ("polarization-network", "--scale", "small", "--data", "nowhere"),
            "There is no folder `nowhere`. Check what `--data` names.",
        ),
        (
            ("polarization-network", "--scale", "small", "--data", "."),
            "The folder `.` must have a sub-folder `cifar10` with that data set: an .npz file, IDX files or CIFAR .bin "
            "batches. It has none.",
        ),
        (("polarization-network", "--steps", "0"), "The `steps` of Order must be at least 1. Got 0 instead."),
        (("polarization-network", "--seed", "-1"), "The `seed` of Order must be at least 0. Got -1 instead."),
    ],
)
def test_a_mistake_is_one_sentence(leaktight: Callable[..., Any], words: tuple[str, ...], sentence: str) -> None:
    said = leaktight("reproduce", *words)
    assert (said.code, said.out, said.err) == (2, "", f"Error: {sentence}\n")


@pytest.mark.usefixtures("toy")
def test_a_file_that_cannot_be_written_is_told_before_anything_runs(leaktight: Callable[..., Any]) -> None:
    Path("folder").mkdir()
    Path("file").write_text("")
    for target, sentence in (
        ("folder", "The file `folder` cannot be written: it is a folder. Name a file in it."),
        ("file/ours.json", "The folder `file` cannot be made: file exists. Choose another one."),
    ):
        said = leaktight("reproduce", "toy", "--workers", "1", "--json", target)
        assert (said.code, said.out, said.err) == (2, "", f"Error: {sentence}\n")
    assert not Path("leaktight-toy-smoke").exists()


def test_an_unknown_scale_is_refused(leaktight: Callable[..., Any]) -> None:
    said = leaktight("reproduce", "polarization-network", "--scale", "huge")
    assert said.code == 2
    assert "huge" in said.err


def test_the_help_names_every_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--help"]) == 0
    said = capsys.readouterr().out
    for name in PAPERS:
        assert name in said


@pytest.mark.parametrize(("width", "shown"), [(200, True), (60, False)])
def test_intervals_are_shown_where_they_have_room(width: int, shown: bool) -> None:
    row = {"key": "a"}
    for number in range(4):
        row |= {f"x{number}": 1.5, f"x{number}_low": 1.25, f"x{number}_high": 1.75}
    out = Console(file=StringIO(), width=width)
    [found] = parts("t", [row], [], ("key",), out)
    assert list(found.columns[1].cells) == ["1.5 (1.25 to 1.75)" if shown else "1.5"]
    assert len(found.columns) == 5


def test_columns_without_a_number_are_left_out_and_missing_ones_are_a_dash() -> None:
    rows = [{"key": "a", "x": None, "y": 1.0}, {"key": "b", "x": None, "y": None}]
    [found] = parts("t", rows, [{"key": "a", "y": 0.5}], ("key",), Console(width=80))
    assert [column.header for column in found.columns] == ["key", "y", "y, published"]
    assert [list(column.cells) for column in found.columns] == [["a", "b"], ["1", "-"], ["0.5", "-"]]


def test_too_many_columns_are_shown_in_parts_that_all_name_their_rows() -> None:
    row = {"key": "a", **{f"x{number}": 1.0 for number in range(11)}}
    shown = parts("t", [row], [{"key": "a", "x9": 0.5}], ("key",), Console(width=80))
    assert [part.title for part in shown] == ["t (1 of 2)", "t (2 of 2)"]
    headers = [[str(column.header) for column in part.columns] for part in shown]
    assert headers == [["key", *(f"x{n}" for n in range(6))], ["key", "x6", "x7", "x8", "x9", "x9, published", "x10"]]
    [whole] = parts("t", [{"key": "a", "x": 1.0}], [], ("key",), Console(width=80))
    assert whole.title == "t"


def test_a_check_whose_interval_straddles_is_undecided() -> None:
    checks = (
        above("one", Reading(name="a", value=0.1, low=-0.1, high=0.3), 0),
        above("two", Reading(name="a", value=0.2, low=0.1, high=0.3), 0),
        above("three", Reading(name="a", value=-0.2, low=-0.5, high=0.1), 0),
    )
    done = Reproduction(
        paper="toy",
        scale="smoke",
        seed=0,
        seconds=0.0,
        tables={},
        published={},
        checks=checks,
        remarks=("Mind the gap.",),
    )
    out = Console(file=StringIO(), width=200)
    show(TOY, done, console=out)
    assert isinstance(out.file, StringIO)
    said = out.file.getvalue()
    assert "- undecided, the value holds: one is 0.1 (-0.1 to 0.3), expected above 0" in said
    assert "- holds: two is 0.2 (0.1 to 0.3), expected above 0" in said
    assert "- undecided, the value does not hold: three is -0.2 (-0.5 to 0.1), expected above 0" in said
    assert said.rstrip().endswith("Mind the gap.")


def test_an_empty_table_is_shown_as_one() -> None:
    done = Reproduction(
        paper="toy", scale="smoke", seed=0, seconds=0.0, tables={"accuracy": []}, published={}, checks=()
    )
    out = Console(file=StringIO(), width=80)
    show(TOY, done, console=out)
    assert isinstance(out.file, StringIO)
    assert "accuracy" in out.file.getvalue()
