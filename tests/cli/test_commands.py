from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leaktight.attacks import Analytic
from leaktight.attacks.presets import PRESETS
from leaktight.cli.export import COLUMNS, as_csv
from leaktight.cli.listing import FAMILIES
from leaktight.cli.report import NOT_JUDGED
from leaktight.core import registry
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.record import Record, Status
from leaktight.core.threat import Knows
from leaktight.data import Npz
from leaktight.defences import LayerGuard
from leaktight.findings import summary
from leaktight.findings.redaction import without_outcomes
from leaktight.learning.federated import Federated
from leaktight.models import MLP
from leaktight.plans import Grid, Plan, read_plan
from leaktight.plans.presets import quick
from leaktight.plans.validation import validate_plan
from leaktight.running import Store

Call = Callable[..., Any]


def test_init_writes_a_plan_that_can_be_read_and_leaves_files_alone(leaktight: Call, tmp_path: Path) -> None:
    said = leaktight("init", "mine.toml")
    assert (said.code, said.out) == (0, "Wrote mine.toml. Run it with `leaktight audit mine.toml`.\n")
    plan = read_plan(tmp_path / "mine.toml")
    assert plan.cells() == quick().cells()
    assert "seed =" not in (tmp_path / "mine.toml").read_text()
    (tmp_path / "mine.toml").write_text("precious")
    assert leaktight("init", "mine.toml").code == 2
    assert (tmp_path / "mine.toml").read_text() == "precious"
    assert leaktight("init").code == 0
    assert (tmp_path / "audit.toml").is_file()


def test_init_writes_a_plan_of_split_learning_too(leaktight: Call, tmp_path: Path) -> None:
    assert leaktight("init", "labels.toml", "--scenario", "split").code == 0
    plan = read_plan(tmp_path / "labels.toml")
    [scenario] = plan.scenarios.values()
    assert (scenario.kind, scenario.data.kind, plan.grid.stages) == ("split", "rare_digit", ("training",))
    assert plan.grid.batch_sizes == (scenario.batch_size,)
    assert list(plan.probes) == ["strongest"]
    # Every message of several passes is measured, and one defence is bounded over all of them.
    assert {cell.victims for cell in plan.cells() if cell.purpose == "measure"} == {scenario.passes * (1438 // 128)}
    assert scenario.passes == max(getattr(defence, "passes", 1) for defence in plan.defences) == 20
    assert {defence.kind for defence in plan.defences} == {"sumkl", "isotropic_noise", "max_norm"}
    validate_plan(plan)
    assert leaktight("init", "labels.toml", "--scenario", "vertical").code == 2


def test_other_data_in_the_plan_of_split_learning_is_valid(leaktight: Call, tmp_path: Path) -> None:
    leaktight("init", "labels.toml", "--scenario", "split")
    text = (tmp_path / "labels.toml").read_text()
    for kind, others in (("criteo", 'path = "train.txt.gz"'), ("csv", 'path = "loans.csv"\nlabel = "default"')):
        changed = text.replace('kind = "rare_digit"', f'kind = "{kind}"\n{others}')
        (tmp_path / f"{kind}.toml").write_text(changed)
        [scenario] = read_plan(tmp_path / f"{kind}.toml").scenarios.values()
        assert scenario.data.kind == kind


def test_the_plan_for_criteo_can_be_read() -> None:
    plan = read_plan(Path(__file__).parents[2] / "docs" / "criteo.toml")
    [scenario] = plan.scenarios.values()
    assert (scenario.data.kind, scenario.cut, len(plan.defences)) == ("criteo", "relu3", 10)
    assert (scenario.passes, plan.grid.victims) == (20, "all")


def test_what_the_template_comments_out_is_valid_too(leaktight: Call, tmp_path: Path) -> None:
    leaktight("init", "mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    chain = text[text.index("# [[defences]]") : text.index("# Who attacks")]
    attack = text[text.index("# [[attacks]]") : text.index("# Where the attacker")]
    opened = "\n".join(line.removeprefix("# ") for line in (chain + attack).splitlines())
    (tmp_path / "more.toml").write_text(text + "\n" + opened)
    plan = read_plan(tmp_path / "more.toml")
    assert str(plan.defences[-1]) == "polarization + gaussian_noise"
    assert list(plan.probes)[-1] == "cosine"
    assert plan.probes["cosine"].threat.knows == {Knows.LABELS, Knows.LOCAL_STEPS}


def test_lines_are_whole_records_without_a_pixel(leaktight: Call, audited: Path) -> None:
    said = leaktight("export", str(audited))
    assert said.code == 0
    with Store.read(audited) as store:
        records = store.records()
    assert [Record.model_validate(json.loads(line)) for line in said.out.splitlines()] == list(
        without_outcomes(records)
    )
    assert "truth_raw" not in said.out
    assert "gallery" not in said.out


def test_rows_are_readings(leaktight: Call, audited: Path, tmp_path: Path) -> None:
    assert leaktight("export", str(audited), "--format", "csv", "--out", "rows.csv").out == ""
    rows = list(csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text())))
    assert tuple(rows[0]) == COLUMNS
    with Store.read(audited) as store:
        records = store.records()
    assert len(rows) == sum(len(record.readings) for record in records)
    control = next(row for row in rows if row["purpose"] == "control" and row["reading"] == "psnr")
    assert float(control["value"]) > 80
    assert control["key"] == next(record.cell.key for record in records if record.cell.purpose == "control")
    assert {(row["purpose"], row["scenario"]) for row in rows} == {("measure", "1"), ("control", "2"), ("null", "1")}


def test_a_cell_without_readings_has_a_row_that_says_why(audited: Path) -> None:
    with Store.read(audited) as store:
        record = store.records()[0]
    failed = record.model_copy(update={"readings": (), "status": Status.FAILED, "reason": 'It, "so".'})
    [row] = csv.DictReader(io.StringIO(as_csv([failed])))
    assert (row["status"], row["reason"], row["value"]) == ("failed", 'It, "so".', "")


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_only_the_owner_can_read_what_was_exported(leaktight: Call, audited: Path, tmp_path: Path, format: str) -> None:
    (tmp_path / "there").touch(0o644)
    for name in ("new", "there"):
        assert leaktight("export", str(audited), "--format", format, "--out", name).code == 0
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
        assert (tmp_path / name).read_text() == leaktight("export", str(audited), "--format", format).out


def test_what_is_passed_on_tells_of_no_single_image_no_error_and_no_folder(leaktight: Call, tmp_path: Path) -> None:
    data = Npz(path="/home/anna/study/scans.npz")
    scenario = Federated(data=data, model=MLP())
    plan = Plan(
        scenarios={"1": scenario}, probes={"a": Attempt(attack=Analytic())}, grid=Grid(seeds=(86753091, 90210734))
    )
    done, failed, *_ = (cell for cell in plan.cells() if cell.purpose == "measure")
    each = Reading(name="psnr", value=12.5, n=2, leaks="high", each=(11.25, 13.75))
    single = Reading(name="mse", value=0.125, n=1, leaks="low")
    with Store.create(tmp_path / "out") as store:
        store.begin(plan)
        store.write(Record(cell=done, status=Status.DONE, readings=(each, single)))
        store.write(Record(cell=failed, status=Status.FAILED, reason="ValueError: pixel 0.625 of /home/anna is odd."))
    for words in (("export", "out"), ("export", "out", "--format", "csv")):
        plain, told = leaktight(*words).out, leaktight(*words, "--redact").out
        assert "0.625" in plain
        assert "0.125" in plain
        assert not any(secret in told for secret in ("11.25", "13.75", "0.125", "0.625", "anna", "scans"))
        assert "86753091" in plain
        assert not any(secret in told for secret in ("86753091", "90210734", done.key, failed.key))
        assert "12.5" in told
    assert "11.25" in leaktight("export", "out").out


def test_a_redacted_table_names_no_file_that_a_defence_reads(made: Any) -> None:
    records = [made.record(LayerGuard(ranking="patients/anna/layers.json"))]
    assert "anna" in as_csv(records)
    [row] = {row["defence"] for row in csv.DictReader(io.StringIO(as_csv(records, redact=True)))}
    assert row == "layer guard (count 1, ranking from a file)"


def test_report_says_where_it_is(leaktight: Call, audited: Path, tmp_path: Path) -> None:
    said = leaktight("report", str(audited), "--redact", "--out", "mine.html")
    assert (said.code, said.out) == (0, "mine.html\n")
    assert "<html" in (tmp_path / "mine.html").read_text()


def test_a_claim_is_judged_or_refused_in_a_sentence(leaktight: Call, audited: Path) -> None:
    said = leaktight("report", str(audited), "--claim", "10,0.1,0.02")
    assert said.code == 0
    lines = said.out.splitlines()[1:]
    assert lines
    assert all("-privacy-aware. Below 10 dB: " in line for line in lines) or lines == [NOT_JUDGED]
    wrong = leaktight("report", str(audited), "--claim", "10,0.1")
    assert wrong.code == 2
    assert "The `--claim` must be a PSNR in dB, a share of images and a loss of accuracy" in wrong.err


def test_terminal_report_and_file_share_one_summary(
    leaktight: Call, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, judge = [], summary.judge
    monkeypatch.setattr(summary, "judge", lambda *rows: judged.append(1) or judge(*rows))
    assert leaktight("audit", str(audited.parent / "small.toml"), "--workers", "1", "--out", str(audited)).code == 0
    assert judged == [1]
    assert leaktight("report", str(audited)).code == 0
    assert judged == [1, 1]


def test_list_shows_every_kind_and_preset(leaktight: Call) -> None:
    said = leaktight("list")
    assert said.code == 0
    for name in {kind for family in registry.families() for kind in registry.classes(family)} | set(PRESETS):
        assert f"\n  {name} " in said.out
    assert leaktight("list", "defence").out == leaktight("list", "defences").out
    assert leaktight("list", "defences").out.count("\n") == len(registry.classes("defence"))
    assert set(FAMILIES.values()) - {""} <= set(registry.families())


def test_each_line_says_something(leaktight: Call) -> None:
    for line in leaktight("list").out.splitlines():
        assert not line.startswith("  ") or len(line.split(maxsplit=1)) == 2 or line.split()[0] == "analytic", line


@pytest.mark.parametrize(
    "family", ["defence", "prior", "attack", "model", "data", "metric", "partition", "protocol", "scenario", "probe"]
)
def test_every_kind_can_be_explained(leaktight: Call, family: str) -> None:
    for kind, made in registry.classes(family).items():
        said = leaktight("explain", kind)
        assert said.code == 0
        assert f"{kind} ({family})" in said.out
        for name in made.model_fields:
            assert name == "kind" or f"\n  {name} " in said.out
        assert [mark for mark in ("\\", ".. math", ":math:") if mark in said.out] == []


@pytest.mark.parametrize("family", [*FAMILIES, ""])
def test_no_list_shows_latex(leaktight: Call, family: str) -> None:
    said = leaktight("list", *filter(None, [family]))
    assert said.code == 0
    assert [mark for mark in ("\\", ".. math", ":math:") if mark in said.out] == []


def test_on_a_terminal_a_list_keeps_to_its_width(leaktight: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = leaktight("list", "defences").out
    monkeypatch.setattr("leaktight.cli.listing.sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setenv("COLUMNS", "80")
    narrow = leaktight("list", "defences").out
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, whole.splitlines()))
    assert narrow.split() == whole.split()


@pytest.mark.parametrize("name", PRESETS)
def test_no_preset_shows_latex(leaktight: Call, name: str) -> None:
    said = leaktight("explain", name)
    assert said.code == 0
    assert [mark for mark in ("\\", ".. math", ":math:") if mark in said.out] == []


def test_explanations_state_ranges_defaults_strength_and_the_paper(leaktight: Call) -> None:
    noise = leaktight("explain", "gaussian_noise").out
    assert re.search(r"std +a number at least 0 +0.01", noise)
    strength = "Strength: `std`; more is stronger, 0 is off. A list of values in a plan sweeps it."
    assert strength in " ".join(noise.split())
    assert "Differs from the paper" in noise
    assert "Strength: `share`; less is stronger, 1 is off." in leaktight("explain", "top_k").out
    assert "Strength: `multiplier`; more is stronger. A list" in leaktight("explain", "dp_sgd").out
    assert "A simple attack, which a strong one should beat." in leaktight("explain", "analytic").out
    assert "a kind of data" in leaktight("explain", "federated").out
    assert "A high value means more leakage." in leaktight("explain", "psnr").out
    opened = " ".join(leaktight("explain", "polarization").out.split())
    assert "Leaves open: A linear first layer with bias gives a single example away exactly" in opened


def test_a_preset_is_explained_by_what_it_is(leaktight: Call) -> None:
    said = " ".join(leaktight("explain", "posterior").out.split())
    assert (
        "posterior: a preset of gradient_matching (attack) Ours, no paper's: searches for the most likely image" in said
    )
    assert "a prior of images that needs no data" in said


@pytest.mark.parametrize(
    "kind", ["gaussian_noise", "laplace_noise", "sumkl", "isotropic_noise", "max_norm", "local_dp"]
)
def test_noise_says_where_it_comes_from(leaktight: Call, kind: str) -> None:
    assert "docs/secrets.md" in leaktight("explain", kind).out


def test_presets_are_explained_with_their_own_values(leaktight: Call) -> None:
    said = leaktight("explain", "ats2021-adam-l1").out
    assert said.startswith("ats2021-adam-l1: a preset of gradient_matching (attack)")
    assert "distance l2 | l1 | cosine | layer_cosine | likelihood 'l1'" in [
        " ".join(line.split()) for line in said.splitlines()
    ]
