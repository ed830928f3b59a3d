"""A kind of leak from another package is judged, ranked, flagged, tabled, drawn and exported like ours."""

import csv
import io
import json
import re

import pytest
from rich.console import Console

from leaktight.cli.export import as_csv
from leaktight.cli.outcome import show
from leaktight.core import registry
from leaktight.core.probe import Attempt
from leaktight.core.record import Status
from leaktight.findings.flags import raise_flags
from leaktight.findings.flags_soundness import is_exact
from leaktight.findings.kind import first_kind, leak_kinds
from leaktight.findings.summary import summarise
from leaktight.findings.summary_file import write_summary
from leaktight.plans.plan import Grid, Plan
from leaktight.report import write_report
from leaktight.running import run


@pytest.fixture(scope="module")
def audit(toys, tmp_path_factory):
    """Return an audit of brightness, and where it is stored: an attack that tells it, and one that does not even without a defence."""
    attacks = {"clear": toys.ToyAttack(), "blurred": toys.ToyAttack(blur=5.0)}
    plan = Plan(
        scenarios={"1": toys.ToyScenario()},
        defences=(toys.ToyNoise(std=1e-6), toys.ToyNoise(std=0.5)),
        probes={name: Attempt(attack=attack, metrics=(toys.ToyGlimpse(),)) for name, attack in attacks.items()},
        grid=Grid(victims=12),
    )
    folder = tmp_path_factory.mktemp("brightness")
    return run(plan, folder), folder


def test_it_is_one_of_the_family(toys):
    assert registry.classes("leak")["toy_brightness"] is toys.ToyBrightness
    assert [kind.kind for kind in leak_kinds()] == [
        "images",
        "samples",
        "labels",
        "property",
        "batch_statistics",
        "toy_brightness",
        "ungraded",
    ]


def test_it_is_judged_and_ranked(toys, audit):
    summary = summarise(audit[0])
    assert {first_kind(row) for row in summary.rows} == {toys.ToyBrightness()}
    found = {judgement.defence.key: judgement for judgement in summary.judgements}
    assert [(one.kind.kind, one.worst.attack) for one in found.values()][:2] == [("toy_brightness", "clear")] * 2
    bare, weak, strong = found.values()
    assert (bare.verdict, weak.verdict, strong.verdict) == ("leaks", "leaks", "unknown")
    assert summary.verdict[0].startswith(
        "No defence: leaks. All 12 pictures have their brightness told (clear; batches of 1,"
    )
    assert "against all 12 without it" in summary.verdict[1]


def test_it_is_flagged(toys, audit):
    flags = {flag.name: flag.sentence for flag in raise_flags(audit[0])}
    assert "The attack blurred did no better than guessing without any defence" in flags["attack_at_chance"]
    done = next(record for record in audit[0] if record.status is Status.DONE and record.reading("toy_glimpse"))
    assert is_exact(done)
    assert not is_exact(done.model_copy(update={"readings": (done.readings[0].model_copy(update={"value": 0.5}),)}))


def test_the_terminal_shows_it(audit):
    text = io.StringIO()
    show(audit[0], console=Console(file=text, width=160))
    assert re.search(r"Attack +Brightness \(95 %\) +Chance", text.getvalue())
    assert re.search(r"\n  clear +1\.00 \(0\.76 to 1\.00\) +0\.05", text.getvalue())
    assert "PSNR" not in text.getvalue()


@pytest.mark.parametrize("redact", [False, True])
def test_the_report_shows_it(audit, redact):
    page = write_report(audit[1], redact=redact).read_text()
    for words in (
        "pictures with their brightness told",
        'id="plot-tradeoff-1-toy_brightness"',
        "Accuracy against brightness told",
        "Noise of the toys: brightness told over strength",
        "toy glimpse: 1",
        '<section id="brightness"',
        "<li>all 12 pictures have their brightness told</li>",
        '<th scope="col">toy glimpse</th>',
        "<dt>Brightness</dt><dd>The mean of all pixels.</dd>",
    ):
        assert words in page
    assert "<dt>PSNR</dt>" not in page


def test_it_is_exported(audit):
    found = json.loads(write_summary(audit[1]).read_text())["verdicts"][0]
    assert (found["kind"], found["verdict"], found["reading"], found["value"]) == (
        "toy_brightness",
        "leaks",
        "toy_glimpse",
        1.0,
    )
    rows = list(csv.DictReader(io.StringIO(as_csv(audit[0]))))
    assert {row["chance"] for row in rows if row["reading"] == "toy_glimpse"} == {"0.05"}
