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

from leaktight.cli.comparison_table import show, table
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
from leaktight.papers.summary import Reason, Summary
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
            checks=lambda rows: [
                above("a claim [2]", 1.0, least=0),
                above("another", -1.0, least=0),
                above("a gap", None, least=0),
            ],
        ),
        Experiment(
            table="figure",
            keys=("defence",),
            rows=lambda order, records: [{"defence": "none", "value": 1}],
            published=claims(("It hurts.", "Fig. 1")),
        ),
    ),
    summary=Summary(reasons=(Reason(checks="another", why="It is too short.", unless="A longer one says otherwise."),)),
)
"""One training run with noise and one without."""


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAPERS, "toy", TOY)


@pytest.mark.usefixtures("toy")
def test_ours_stand_beside_the_published_and_then_come_the_checks(leaktight: Callable[..., Any]) -> None:
    said = leaktight("reproduce", "toy", "--workers", "1")
    assert said.code == 0
    assert said.err.startswith("one (1 of 1): 3 cells: no defence and 1 defence x 1 measurement, and 1 check ")
    [line] = [line for line in said.out.splitlines() if "none" in line and "0.987" in line]
    assert " to " in line
    title, summary = said.out.splitlines()[:2]
    assert title.startswith("A toy [1], scale smoke, seed 0, ")
    assert (
        summary
        == "1 holds, 1 does not, 1 not measured, of 3. Smoke shows that everything runs; use --scale small to judge."
    )
    assert "Published: It hurts. (Fig. 1)" in said.out
    assert "- holds: a claim [2] is 1, expected above 0" in said.out
    assert "- does not hold: another is -1, expected above 0" in said.out
    assert "- not measured: a gap is -, expected above 0" in said.out
    assert said.out.index("Published") < said.out.index("Checks:")
    assert Path("leaktight-toy-smoke", "one", "audit.sqlite").is_file()


@pytest.mark.usefixtures("toy")
def test_the_file_has_exactly_the_promised_keys(leaktight: Callable[..., Any]) -> None:
    said = leaktight("reproduce", "toy", "--workers", "1", "--seed", "4", "--out", "work", "--steps", "1")
    assert said.code == 0
    assert "Result: work/reproduction.json" in said.out
    assert "Cut by --steps 1: at most 1 of everything that is counted." in said.out
    found = json.loads(Path("work", "reproduction.json").read_text())
    assert {"paper", "scale", "seed", "steps", "tables", "keys", "published", "checks", "remarks"} <= set(found)
    [remark] = found["remarks"]
    assert remark.startswith("Cut by --steps 1: ")
    assert (found["paper"], found["scale"], found["seed"]) == ("toy", "smoke", 4)
    assert [set(check) for check in found["checks"]] == [
        {"name", "value", "expected", "holds", "low", "high", "undecided", "why", "unless"}
    ] * 3
    assert [row["defence"] for row in found["tables"]["accuracy"]] == ["none", "gaussian_noise"]
    assert stat.S_IMODE(Path("work", "reproduction.json").stat().st_mode) == 0o600
    assert Path("work", "one").is_dir()
    words = ("reproduce", "toy", "--workers", "1", "--seed", "4", "--out", "work", "--steps", "1")
    printed = json.loads(leaktight(*words, "--json").out)
    assert {**printed, "seconds": 0} == {**found, "seconds": 0}
    assert json.loads(leaktight(*words, "--json", "--quiet").out)["paper"] == "toy"
    said = leaktight(*words, "--json", "results/toy.json")
    assert "Result: results/toy.json" in said.out
    kept = json.loads(Path("results", "toy.json").read_text())
    assert {**kept, "seconds": 0} == {**found, "seconds": 0}
    quiet = leaktight(*words, "--quiet")
    assert quiet.out.startswith("1 holds, 1 does not, 1 not measured, of 3.\nPage: work/reproduction")
    assert "cells" not in quiet.err


@pytest.mark.usefixtures("toy")
def test_a_whole_run_on_real_sets_says_why_a_claim_does_not_hold(leaktight: Callable[..., Any]) -> None:
    words = ("reproduce", "toy", "--workers", "1", "--out", "work", "--scale", "small")
    said = leaktight(*words)
    assert "expected above 0\n  It is too short. A longer one says otherwise.\n" in said.out
    for others in (("--scale", "smoke"), ("--steps", "1")):
        assert "It is too short." not in leaktight(*words, *others).out


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
    assert said.err.endswith("Interrupted: finished cells are kept; run the same command to resume.\n")


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
            "The folder `.` must have a sub-folder `cifar10` with that data set: an .npz file, IDX files, CIFAR .bin "
            "batches or the .mat files of SVHN. It has none.",
        ),
        (("polarization-network", "--steps", "0"), "The `steps` of Order must be at least 1. Got 0 instead."),
        (("polarization-network", "--seed", "-1"), "The `seed` of Order must be at least 0. Got -1 instead."),
    ],
)
def test_a_mistake_is_one_sentence(leaktight: Callable[..., Any], words: tuple[str, ...], sentence: str) -> None:
    said = leaktight("reproduce", *words)
    assert (said.code, said.out, said.err) == (2, "", f"Error: {sentence}\n")


@pytest.mark.usefixtures("toy")
def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(leaktight: Callable[..., Any]) -> None:
    Path("file").write_text("")
    said = leaktight("reproduce", "toy", "--workers", "1", "--out", "file/work")
    sentence = "The folder `file/work` cannot be made: not a directory. Choose another one."
    assert (said.code, said.out, said.err) == (2, "", f"Error: {sentence}\n")


def test_an_unknown_scale_is_refused(leaktight: Callable[..., Any]) -> None:
    said = leaktight("reproduce", "polarization-network", "--scale", "huge")
    assert said.code == 2
    assert "huge" in said.err


def test_the_help_names_every_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--help"]) == 0
    said = capsys.readouterr().out
    for name in PAPERS:
        assert name in said


def lines(rows: list[Row], published: list[Row], keys: tuple[str, ...], width: int) -> list[str]:
    return [line.plain for line in table(rows, published, keys, width)]


@pytest.mark.parametrize(("width", "shown"), [(200, True), (60, True), (30, False)])
def test_intervals_are_shown_unless_they_make_many_parts(width: int, shown: bool) -> None:
    row: Row = {"key": "a"}
    for number in range(6):
        row |= {f"x{number}": 1.5, f"x{number}_low": 1.25, f"x{number}_high": 1.75}
    found = lines([row], [], ("key",), width)
    assert any("1.50 (1.25 to 1.75)" in line for line in found) is shown
    assert sum(line.count("1.50") for line in found) == 6
    assert max(map(len, found)) <= width


def test_columns_without_a_number_are_left_out_and_missing_ones_are_a_dash() -> None:
    rows: list[Row] = [{"key": "a", "x": None, "y": 1.0}, {"key": "b", "x": None, "y": None}]
    found = lines(rows, [{"key": "a", "y": 0.5}], ("key",), 80)
    assert [line.split() for line in found] == [
        ["key", "y", "y,", "published"],
        ["-" * len(found[1])],
        ["a", "1.00", "0.50"],
        ["b", "-", "-"],
    ]


def test_published_columns_without_a_number_of_these_rows_are_hidden() -> None:
    found = lines([{"key": "a", "y": 1.0}], [{"key": "other", "y": 0.5}], ("key",), 80)
    assert not any("published" in line for line in found)


def test_too_many_columns_are_shown_in_parts_that_all_name_their_rows() -> None:
    row: Row = {"key": "a", **{f"x{number}": 1.0 for number in range(30)}}
    found = lines([row], [{"key": "a", "x9": 0.5}], ("key",), 80)
    assert len([line for line in found if line.startswith("a ")]) == 3
    assert max(map(len, found)) <= 80


def test_keys_that_leave_no_room_stand_above_their_rows() -> None:
    keys = ("data_set", "mechanism", "strength")
    rows: list[Row] = [
        {"data_set": "cifar10-and-more", "mechanism": name, "strength": 0.001, "accuracy": 0.5, "psnr": 20.0}
        for name in ("polarization network", "gaussian noise")
    ]
    found = lines(rows, [], keys, 46)
    assert max(map(len, found)) <= 46
    assert "data set cifar10-and-more" in found
    assert any(line.strip().startswith("polarization network") for line in found)


def test_digits_are_those_of_the_metric_or_fixed_in_a_column() -> None:
    rows: list[Row] = [
        {"key": str(psnr), "psnr": psnr, "value": value, "wide": wide}
        for psnr, value, wide in ((20.0, 0.5, 1e-7), (3.14159, 0.25, 400.0))
    ]
    assert [line.split()[1:] for line in lines(rows, [], ("key",), 80)[-2:]] == [
        ["20.0", "0.500", "1e-07"],
        ["3.1", "0.250", "400"],
    ]


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
