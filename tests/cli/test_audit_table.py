"""The outcome of every kind of audit on narrow terminals: who was measured can always be read."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from leaktight.attacks import GanAttack, PropertyInference
from leaktight.captures import AsCaptured
from leaktight.cli.audit_table import table
from leaktight.cli.outcome import show
from leaktight.core.defence import Chain, Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Record, Status
from leaktight.defences import DPSGD, GaussianNoise, IsotropicNoise, SumKL, TopK
from leaktight.findings.display import name_of
from leaktight.findings.summary import summarise

Make = Callable[[Any], list[Record]]


def reading(name: str, value: float, chance: float | None = 0.5, **more: Any) -> Reading:
    ends = {"low": max(0.0, value - 0.05), "high": min(1.0, value + 0.05)}
    return Reading(**{"name": name, "value": value, "n": 40, "chance": chance, "leaks": "high", **ends, **more})


def images(made: Any) -> list[Record]:
    return list(made.audit())


def many_settings(made: Any) -> list[Record]:
    return [
        made.record(defence, label=label, stage=stage, batch_size=size)
        for defence in (None, Chain(links=(GaussianNoise(std=0.0001), TopK(share=0.05))), DPSGD())
        for label in ("dlg2019, changed", "strongest", "fan2020-adaptive")
        for stage in ("initial", "end")
        for size in (1, 4)
    ]


def split_labels(made: Any) -> list[Record]:
    def readings_of(value: float) -> tuple[Reading, ...]:
        tail = reading("leak_auc_q95", value, 0.6)
        return (
            reading("leak_auc", value),
            tail,
            reading("leak_auc", value, layer="linear1"),
            reading("auc", 0.87, leaks=None),
        )

    return [
        made.record(defence, psnr=None, accuracy=None, label=label, extra=readings_of(0.9))
        for defence in (None, SumKL(), IsotropicNoise(), TopK())
        for label in ("gradient_norm", "direction", "clustering", "label_posterior")
    ]


def made_up_pictures(made: Any) -> list[Record]:
    def readings_of(value: float) -> tuple[Reading, ...]:
        return reading("recognised", value, 0.1), reading("recognised_any", value, 0.5)

    return [
        made.record(defence, psnr=None, accuracy=accuracy, extra=readings_of(0.25), attack=GanAttack(), label=label)
        for defence in (None, GaussianNoise(), TopK(share=0.01))
        for label, accuracy in (("gan", 0.8), ("gan-with-a-long-name", 0.7))
    ]


def property_and_images(made: Any) -> list[Record]:
    told = (
        reading("property_auc", 0.9),
        *(reading("property_auc", 0.8, layer=name) for name in ("body.conv1", "head")),
    )
    return [
        one
        for defence in (None, GaussianNoise())
        for one in (
            made.record(defence, psnr=20.0),
            made.record(defence, psnr=None, attack=PropertyInference(), label="property", extra=told),
        )
    ]


def labels_that_come_with_updates(made: Any) -> list[Record]:
    return [made.record(defence, psnr=None, labels=0.25, label="label_reading") for defence in (None, TopK())]


def captured(made: Any) -> list[Record]:
    left = (Reading(name="objective", value=1e-9, n=4), Reading(name="diverged", value=1.0, n=4))
    return [made.record(AsCaptured(), psnr=None, accuracy=None, label=label, extra=left) for label in ("one", "other")]


def nothing_done(made: Any) -> list[Record]:
    return [made.record(TopK(), status=Status.REFUSED, reason="It must not."), made.record(status=Status.FAILED)]


def several_scenarios(made: Any) -> list[Record]:
    other = made.SCENARIO.model_copy(update={"rounds": 77})
    return [*made.audit(), *(made.record(defence, scenario=other) for defence in (None, TopK()))]


KINDS = [
    images,
    many_settings,
    split_labels,
    made_up_pictures,
    property_and_images,
    labels_that_come_with_updates,
    captured,
    nothing_done,
    several_scenarios,
]


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("make", KINDS)
def test_every_name_is_whole_and_no_line_too_wide(make: Make, width: int, made: Any) -> None:
    records = make(made)
    text = io.StringIO()
    show(records, ["one", "two"], Console(file=text, force_terminal=True, width=width, color_system=None))
    lines = text.getvalue().splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert "…" not in text.getvalue()
    summary = summarise(records)
    shown = [line.plain for line in table(summary.rows, width)]
    for row in summary.rows:
        assert any(name_of(row.defence).lower() in line.lower() for line in shown)
        assert any(row.attack in line for line in shown)


def test_a_setting_that_all_share_stands_above_and_utility_beside_the_defence(made: Any) -> None:
    rows = summarise([made.record(), made.record(GaussianNoise(std=0.001), accuracy=0.7)]).rows
    lines = [line.plain for line in table(rows, 80)]
    assert lines[1] == "Numbers (batches of 1, before training):"
    assert "No defence: accuracy 80.0 %" in lines
    assert "Gaussian noise (std 0.001): accuracy 70.0 %" in lines
    assert not any("Batch" in line or "Accuracy" in line for line in lines)


def test_the_number_that_a_verdict_rests_on_stands_in_the_table(made: Any) -> None:
    team = {"attack": made.TEAM, "label": "team"}
    bare = made.record(psnr=38, extra=made.members({"simple": 38, "learned": 30}), **team)
    defended = made.record(TopK(), psnr=12, extra=made.members({"simple": 12, "learned": 30}), **team)
    text = io.StringIO()
    show([bare, defended], console=Console(file=text, width=80))
    lines = text.getvalue().splitlines()
    assert any(line.startswith("- Top-k (share 0.1): leaks.") and "learned" in line for line in lines)
    [row] = [line.split() for line in lines if line.startswith("  learned (of team)")]
    assert row[3] == "30.0"


def test_settings_that_differ_have_columns(made: Any) -> None:
    lines = [line.plain for line in table(summarise([made.record(batch_size=size) for size in (1, 8)]).rows, 80)]
    assert lines[1] == "Numbers (before training):"
    assert lines[2].split()[:2] == ["Attack", "Batch"]


def test_an_attacker_inside_gives_each_row_its_own_utility(made: Any) -> None:
    lines = [line.plain for line in table(summarise(made_up_pictures(made)).rows, 80)]
    assert "No defence" in lines
    assert all(len(line) <= 80 for line in lines)
    # The columns do not fit side by side, so each row stands in two parts, and the second ends with its accuracy.
    rows = [line for line in lines if line.startswith("  gan ")]
    assert len(rows) == 6
    assert "25.0 % (20.0 to 30.0)" in rows[0]
    [head] = [line for line in lines if line.endswith("Accuracy")]
    assert rows[3].endswith("80.0 %")
    assert lines.index(head) < lines.index(rows[3])


def test_what_was_refused_stands_where_its_attack_is_at_home(made: Any) -> None:
    refused = made.record(
        TopK(), psnr=None, attack=PropertyInference(), label="property", status=Status.REFUSED, reason="no"
    )
    shown = "\n".join(line.plain for line in table(summarise([*property_and_images(made), refused]).rows, 80))
    images, _, about = shown.partition("Numbers, private property")
    assert "refused" in about
    assert "refused" not in images


def test_the_control_of_an_audit_has_no_row(made: Any, tmp_path: Path) -> None:
    rows = summarise([made.control(), made.record(Undefended())]).rows
    assert not any("analytic" in line.plain for line in table(rows, 80))
