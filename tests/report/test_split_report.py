"""A split audit from TOML to the page: run for real, at the smallest scale."""

from __future__ import annotations

import re

import pytest

from leaktight.core.record import Status
from leaktight.findings.flags import raise_flags
from leaktight.plans.plan_file import read_plan
from leaktight.report import write_report
from leaktight.running import run

TEXT = """
title = "Labels"

[scenario]
kind = "split"
label_party = ["r0*"]
rounds = 24
batch_size = 128
moments = 6
data = "rare_digit"
model = { kind = "wide_deep", hidden = [8, 8] }
optimiser = { kind = "adam", learning_rate = 0.01 }

[[defences]]
kind = "sumkl"
bound = [0.1, 0.4]

[[attacks]]
kind = "gradient_norm"
name = "norm"
layer = "all"

[[attacks]]
kind = "direction"

[threat]
seat = "feature-party"
knows = ["hints"]

[grid]
batch_sizes = [128]
stages = ["training"]
victims = 12
"""


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("split")
    (folder / "labels.toml").write_text(TEXT)
    records = run(read_plan(folder / "labels.toml"), folder / "out", workers=1)
    return records, folder / "out"


def test_every_cell_is_done_and_the_checks_pass(audit):
    records, _ = audit
    assert {record.status for record in records} == {Status.DONE}
    names = {flag.name for flag in raise_flags(records)}
    assert not names & {"control_missing", "control_not_exact", "null_above_chance", "cells_failed", "cells_refused"}


def test_records_hold_nothing_for_each_example(audit):
    records, _ = audit
    longest = max(len(reading.each) for record in records for reading in record.readings)
    assert longest <= 100
    assert 12 * 128 not in {len(reading.each) for record in records for reading in record.readings}


def test_the_undefended_leak_is_there_and_the_strong_defence_lowers_it(audit):
    records, _ = audit
    found = {
        (record.cell.label, str(record.cell.defence)): record.reading("leak_auc").value
        for record in records
        if record.cell.purpose == "measure"
    }
    assert found["direction", "none"] > 0.95
    for attack in ("norm", "direction"):
        assert found[attack, "sumkl(bound=0.4)"] < found[attack, "none"] - 0.1


def test_the_page_tells_it(audit):
    _, folder = audit
    text = write_report(folder).read_text()
    shown = text
    assert "The feature party tells labels with AUC" in shown
    for anchor in ("trade-off", "labels", "norms", "table", "checks"):
        assert f'<section id="{anchor}"' in shown
    assert len(re.findall(r'id="plot-labels-', shown)) == 1
    assert len(re.findall(r'id="plot-norms-', shown)) == 3
    assert "not passed" not in shown


def test_the_redacted_page_has_no_step_and_no_histogram(audit):
    _, folder = audit
    text = write_report(folder, redact=True).read_text()
    assert "plot-labels-" not in text
    assert "plot-norms-" not in text
    assert "leak AUC" in text
