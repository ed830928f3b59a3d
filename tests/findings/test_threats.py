import csv
import io

from rich.console import Console

from leaktight.attacks import FewHints, GanAttack, GradientMatching
from leaktight.attacks.presets import PRESETS
from leaktight.cli.explain import explain_class
from leaktight.cli.export import as_csv
from leaktight.cli.outcome import show
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.findings.threats import attacks_by_letter
from leaktight.report.render import render


def seated(record, seat):
    probe = record.cell.probe
    moved = Attempt(attack=probe.attack, threat=ThreatModel(seat=seat), metrics=probe.metrics)
    return record.model_copy(update={"cell": record.cell.model_copy(update={"probe": moved})})


def test_attacks_are_told_by_letter(made):
    public = {"attack": made.GEIPING, "label": "geiping2020", "knows": (Knows.AUXILIARY,)}
    records = [made.record(**public), made.record(), made.record(label="other"), made.null()]
    told = attacks_by_letter([*records, seated(made.record(attack=GanAttack(), label="gan"), "client-1")])
    assert told == [
        "C (parameter-aware eavesdropper, ★★★): dlg2019 and other",
        "D (data-enhanced eavesdropper, ★★☆): geiping2020",
    ]


def test_terminal_report_and_export_show_it(made):
    records = [made.control(), made.record(), seated(made.record(label="there", attack=FewHints()), "feature-party")]
    console = Console(record=True, file=io.StringIO())
    show(records, console=console)
    assert (
        "Threat models (letters of Carletti et al. 2025):\n- C (parameter-aware eavesdropper, ★★★): dlg2019\n"
        in console.export_text()
    )
    page = render(records, made.plan(), made.VERSIONS, lambda key: None)
    assert page.count("In the letters of Carletti et al. 2025: C (parameter-aware eavesdropper, ★★★).") == 1
    assert {row["probe"]: row["threat"] for row in csv.DictReader(io.StringIO(as_csv(records)))} == {
        "analytic": "C",
        "dlg2019": "C",
        "there": "",
    }


def test_explain_says_what_an_attack_needs_at_least():
    assert "Threat model, at least: B (informed eavesdropper, ★★★) in the letters" in "\n".join(
        explain_class(GradientMatching)
    )
    adaptive = "\n".join(explain_class(GradientMatching, "ats2021-adaptive", PRESETS["ats2021-adaptive"]))
    assert "Threat model, at least: D" in adaptive
    assert not any("Threat model" in line for made in (GanAttack, FewHints) for line in explain_class(made))
