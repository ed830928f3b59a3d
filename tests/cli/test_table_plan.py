"""`leaktight init --data`: a plan that fits a person's own table, and runs."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.plans import read_plan
from leaktight.plans.validation import validate_plan

Call = Callable[..., Any]


def write(path: Path, rows: int = 400, separator: str = ";", classes: int = 2) -> None:
    """Write a table as one finds it: an id, a name, holes, a constant, codes, and a label."""
    draw = random.Random(0)  # noqa: S311
    header = ["customer_id", "name", "age", "job", "country", "grade", "balance", "note #1", "default"]
    lines = [separator.join(header)]
    for row in range(rows):
        balance = draw.gauss(0, 100)
        label = ["no", "yes", "perhaps"][int(balance > 50) if classes == 2 else row % 3]
        job = draw.choice(["cook", "clerk", "pilot"])
        age = "" if row % 17 == 0 else str(draw.randint(18, 90))
        cells = [
            str(7 * row),
            f"anna {row}",
            age,
            job,
            "de",
            str(1 + row % 5),
            f"{balance:.2f}",
            f"free text {2 * row // 3}",
            label,
        ]
        lines.append(separator.join(cells))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "loans.csv"
    write(path)
    return path


def test_it_reads_the_columns_and_says_why(leaktight: Call, table: Path, tmp_path: Path) -> None:
    said = leaktight("init", "--data", "loans.csv:default", "loans.toml")
    assert (said.code, said.out) == (0, "Wrote loans.toml. Run it with `leaktight audit loans.toml`.\n"), said.err
    text = (tmp_path / "loans.toml").read_text()
    data = tomllib.loads(text)["scenario"]["data"]
    assert data == {
        "kind": "csv",
        "path": "loans.csv",
        "label": "default",
        "positive": "yes",
        "missing": "fill",
        "ignore": ["customer_id", "name", "country", "note #1"],
    }
    for comment in (
        "# rows of each class: no (",
        "# another value in each row: it names the row",
        "# the same in each row",
        "# empty cells in age (24)",
        '# categorical = ["grade"]',
    ):
        assert comment in text
    [scenario] = read_plan(tmp_path / "loans.toml").scenarios.values()
    assert (scenario.model.kind, scenario.participants, scenario.batch_size) == ("mlp", 4, 32)
    assert scenario.data.load().shape == (6,)  # age, three jobs, grade, balance


def test_the_plan_runs(leaktight: Call, tmp_path: Path) -> None:
    write(tmp_path / "few.csv", rows=60, separator="\t")
    assert leaktight("init", "--data", "few.csv:default", "few.toml").code == 0
    text = (tmp_path / "few.toml").read_text()
    [scenario] = read_plan(tmp_path / "few.toml").scenarios.values()
    assert (scenario.participants, scenario.batch_size) == (1, 24)
    # The same plan, with an attack and a training that take no time.
    head = text[: text.index("# What is compared")].replace("rounds = 100", "rounds = 2")
    (tmp_path / "few.toml").write_text(head + '[[attacks]]\nkind = "analytic"\n[grid]\nvictims = 2\n')
    said = leaktight("audit", "few.toml", "--workers", "1")
    assert said.code == 0, said.err
    assert "leaks" in said.out


def test_a_tiny_table_is_one_batch_of_two_parties(leaktight: Call, tmp_path: Path) -> None:
    (tmp_path / "tiny.csv").write_text("a,b,label\n" + "".join(f"{row % 7},{row % 5},{row % 2}\n" for row in range(10)))
    said = leaktight("init", "--data", "tiny.csv", "--scenario", "split", "tiny.toml")
    assert said.code == 0, said.err
    [scenario] = read_plan(tmp_path / "tiny.toml").scenarios.values()
    assert scenario.batch_size == 8


def test_two_parties_share_the_columns(leaktight: Call, table: Path, tmp_path: Path) -> None:
    assert leaktight("init", "--data", "loans.csv:default", "--scenario", "split", "split.toml").code == 0
    text = (tmp_path / "split.toml").read_text()
    assert "half and half: the feature party has age, job and grade.\n" in text
    plan = read_plan(tmp_path / "split.toml")
    [scenario] = plan.scenarios.values()
    assert (scenario.kind, scenario.label_party, scenario.batch_size) == ("split", ("balance", "note #1"), 16)
    assert (scenario.data.words, scenario.data.positive) == ("hashed", "yes")
    assert plan.grid.batch_sizes == (16,)
    validate_plan(plan)


def test_what_the_person_says_goes_before_what_is_found(leaktight: Call, table: Path, tmp_path: Path) -> None:
    options = [
        "--positive",
        "no",
        "--ignore",
        "age",
        "--ignore",
        "grade",
        "--missing",
        "error",
        "--separator",
        "semicolon",
    ]
    assert leaktight("init", "--data", "loans.csv:default", *options, "mine.toml").code == 0
    data = tomllib.loads((tmp_path / "mine.toml").read_text())["scenario"]["data"]
    assert (data["positive"], data["missing"], data["separator"]) == ("no", "error", ";")
    assert data["ignore"] == ["age", "grade", "customer_id", "name", "country", "note #1"]
    assert leaktight("init", "--data", "loans.csv:default", "--categorical", "grade", "codes.toml").code == 0
    [scenario] = read_plan(tmp_path / "codes.toml").scenarios.values()
    assert scenario.data.load().shape == (10,)  # five grades in place of one number


def test_a_large_table_is_limited_where_all_messages_are_kept(leaktight: Call, tmp_path: Path) -> None:
    write(tmp_path / "large.csv", rows=26_000)
    assert leaktight("init", "--data", "large.csv:default", "--scenario", "split", "large.toml").code == 0
    [scenario] = read_plan(tmp_path / "large.toml").scenarios.values()
    assert (scenario.data.train_limit, scenario.batch_size) == (20_000, 1024)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--data", "loans.csv:defalt"), "has no column `defalt`. Did you mean `default`?"),
        (("--data", "loans.csv"), "The `label` of csv must say which column of `loans.csv` is the label."),
        (("--data", "loans.csv:balance"), "The label `balance` of `loans.csv` must name 2 to 100 classes. Got "),
        (("--data", "loans.csv:country"), "must name 2 to 100 classes. Got 1 different values"),
        (("--data", "three.csv:default", "--scenario", "split"), "must name two classes for split learning. Got 3;"),
        (("--data", "digits"), "`--data` must name a table (.csv, .tsv) whose columns can be read"),
        (("--data", "gone.csv:default"), "There is no file or folder `gone.csv`."),
        (("--data", "loans.csv:default", "--scenario", "label-party"), "`--data` is for a plan of an audit."),
        (("--ignore", "age"), "`--ignore` says how a table is read. Name one with `--data`."),
        (("--example", "tradeof"), "There is no example named `tradeof`. Did you mean `tradeoff`?"),
        (("--example", "gan", "--data", "loans.csv:default"), "`--example` is a whole plan."),
    ],
)
def test_what_does_not_go_gets_one_sentence_and_no_file(
    leaktight: Call, table: Path, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    write(tmp_path / "three.csv", classes=3)
    said = leaktight("init", *words, "new.toml")
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err
    assert not (tmp_path / "new.toml").exists()


@pytest.mark.parametrize("name", ["criteo", "gan", "layer_guard", "tradeoff"])
def test_ready_plans_come_along_and_are_those_of_the_documentation(leaktight: Call, tmp_path: Path, name: str) -> None:
    assert leaktight("init", "--example", name).out.startswith(f"Wrote {name}.toml. Run it with `leaktight audit ")
    text = (tmp_path / f"{name}.toml").read_text()
    assert text == (Path(__file__).parents[2] / "docs" / f"{name}.toml").read_text()
    assert read_plan(tmp_path / f"{name}.toml").probes
