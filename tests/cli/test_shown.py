"""What is shown: the outcome of an audit, and settings in words."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import Field
from rich.console import Console

from leaktight.attacks import PropertyInference
from leaktight.cli.audit_table import table
from leaktight.cli.outcome import reasons, show, words_of
from leaktight.cli.setting_table import describe_type, settings
from leaktight.core.defence import Defence
from leaktight.core.metric import Reading
from leaktight.core.record import Record, Status
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.column import interval
from leaktight.findings.summary import summarise
from leaktight.probes import Sensitivity
from leaktight.running import Store


def screen(terminal: bool = True, width: int = 200) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=width, color_system=None), text


@pytest.fixture(scope="module")
def records(audited: Path) -> list[Record]:
    with Store.read(audited) as store:
        return store.records()


def test_the_headline_stands_first_and_the_table_after_the_advice(made: Any) -> None:
    console, text = screen(terminal=False)
    show(made.audit(), console=console)
    shown = text.getvalue()
    assert shown.startswith("Without a defence, all 8 images can be recognised from one shared message.")
    places = [shown.index(words) for words in ("Verdict, images:", "Advice:", "Numbers", "Reasons to doubt")]
    assert places == sorted(places)


def test_few_words_name_each_defence_once(made: Any) -> None:
    words = words_of(summarise(made.two_principles(TopK(), labels=0.0)))
    assert words == [
        "Images, no defence: leaks",
        "Images, top-k (share 0.1): not broken",
        "Labels, no defence: leaks",
        "Labels, top-k (share 0.1): leaks",
    ]
    assert words_of(summarise([made.record()])) == ["No defence: leaks"]


def test_what_a_budget_cut_is_a_reason_to_doubt(records: list[Record]) -> None:
    console, text = screen(terminal=False)
    show(records, console=console, caveats=["A time budget of 20 s shortened this audit."])
    assert "- A time budget of 20 s shortened this audit." in text.getvalue().split("Reasons to doubt this audit:")[1]


def test_several_scenarios_are_numbered_and_named(records: list[Record]) -> None:
    console, text = screen()
    show(records, ["only"], console)
    assert "Scenario" not in text.getvalue()
    moved = [r.model_copy(update={"cell": r.cell.model_copy(update={"scenario": longer(r)})}) for r in records]
    console, text = screen()
    show([*records, *moved], ["short", "long"], console)
    headings = [line.partition(":")[0] for line in text.getvalue().splitlines() if line.startswith("Scenario ")]
    assert headings == [
        f"Scenario {number}, {name}" for number in (1, 2) for name in ("no defence", "Gaussian noise (std 0.5)")
    ]
    assert "Scenarios:\n- 1: short\n- 2: long\n" in text.getvalue()
    assert "Scenario 2. No defence: leaks." in text.getvalue()


def cells(line: str) -> list[str]:
    return re.split(r"  +", line.strip())


def longer(record: Record) -> Any:
    return record.cell.scenario.model_copy(update={"rounds": 77})


def test_rows_without_numbers_say_why(records: list[Record]) -> None:
    update = {"readings": (), "reason": "It [must] not."}
    changed = [
        r.model_copy(update={**update, "status": Status.REFUSED}) if r.cell.defence.kind != "none" else r
        for r in records
    ]
    changed[0] = changed[0].model_copy(update={**update, "status": Status.FAILED})
    console, text = screen()
    show(changed, console=console)
    assert "refused" in text.getvalue()
    assert "Refused:\n- 1 cell: It [must] not." in text.getvalue()
    assert "Failed:\n- 1 cell: It [must] not." in text.getvalue()
    assert reasons(changed * 2, Status.FAILED) == ["2 cells: It [must] not."]


def test_a_file_gets_long_lines_and_whole_columns(records: list[Record]) -> None:
    console, text = screen(terminal=False, width=40)
    show(records, console=console)
    assert "100.0 (100.0 to 100.0)" in text.getvalue()
    verdict = next(line for line in text.getvalue().splitlines() if line.startswith("- Gaussian noise"))
    assert verdict.endswith(".")


def test_defences_at_several_strengths_get_a_line_of_cap(made: Any) -> None:
    console, text = screen(terminal=False)
    show(made.sweep(), console=console)
    heading = "CAP (usefulness times the attacker's error, over strengths; higher is better):"
    lines = text.getvalue().split(heading)[1].splitlines()[1:3]
    assert lines[0].startswith("- Gaussian noise, 3 strengths: reconstruction 0.30 (")
    assert lines[0].endswith("(dlg2019; batches of 1, before training)")
    assert lines[1].startswith("- Top-k, 3 strengths: reconstruction ")


def reading_of(value: float, layer: str | None = None, name: str = "property_auc") -> Reading:
    ends = {"low": value - 0.05, "high": min(1.0, value + 0.05)}
    return Reading(name=name, value=value, n=40, chance=0.5, leaks="high", layer=layer, **ends)


def test_a_property_has_columns_of_its_own_and_layers_a_sentence(made: Any) -> None:
    layers = (reading_of(0.6, "conv1"), reading_of(0.95, "head"))
    sensitive = tuple(reading_of(value, layer, "sensitivity_f") for layer, value in (("conv1", 3.0), ("head", 4.0)))
    records = [
        made.record(psnr=None, attack=PropertyInference(), label="property", extra=(reading_of(0.9), *layers)),
        made.record(psnr=None, probe=Sensitivity(), label="measured", extra=sensitive),
    ]
    console, text = screen()
    show(records, console=console)
    shown = text.getvalue()
    [line] = [line for line in shown.splitlines() if line.startswith("  property ")]
    assert cells(line) == ["property", "0.90 (0.85 to 0.95)", "0.50", "head 0.95"]
    assert "Property AUC (95 %)" in shown
    assert "PSNR" not in shown
    assert "measured" not in shown.split("Verdict")[0]
    where = shown.split("Where the leak sits:")[1]
    assert "- By itself head best tells whether" in where
    assert "- All layers are computed from the same examples, so hiding one layer may hide nothing." in where


def test_images_and_property_have_tables_of_their_own(made: Any) -> None:
    property_record = made.record(psnr=None, attack=PropertyInference(), label="property", extra=(reading_of(0.9),))
    console, text = screen()
    show([made.record(psnr=30.0), property_record], console=console)
    images, _, rest = text.getvalue().partition("Numbers, private property (batches of 1, before training):")
    assert "Numbers, images (batches of 1, before training):" in images
    assert "PSNR in dB (95 %)" in images
    assert "PSNR" not in rest.partition("\n\n")[0]
    [line] = [line for line in rest.splitlines() if line.startswith("  property ")]
    assert cells(line) == ["property", "0.90 (0.85 to 0.95)", "0.50"]
    assert "Where the leak sits" not in text.getvalue()


def test_layers_of_several_settings_say_which(made: Any) -> None:
    extra = (reading_of(0.9), reading_of(0.6, "conv1"), reading_of(0.95, "head"))
    common = {"psnr": None, "attack": PropertyInference(), "label": "property", "extra": extra}
    console, text = screen()
    show([made.record(batch_size=size, **common) for size in (4, 16)], console=console)
    lines = text.getvalue().split("Where the leak sits:")[1].splitlines()[1:3]
    assert [line.partition(":")[0] for line in lines] == [
        "- Batches of 4, before training",
        "- Batches of 16, before training",
    ]


def test_without_curves_there_is_no_word_of_cap(records: list[Record]) -> None:
    console, text = screen()
    show(records, console=console)
    assert "CAP" not in text.getvalue()


def test_numbers_with_and_without_interval() -> None:
    assert interval(Reading(name="cap", value=0.314, low=0.2, high=0.4), 2) == "0.31 (0.20 to 0.40)"
    assert interval(None) == "-"
    assert interval(Reading(name="psnr", value=3.14)) == "3.1"
    assert interval(Reading(name="psnr", value=3.14, low=2, high=4)) == "3.1 (2.0 to 4.0)"


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "a whole number"),
        (Literal["a", "b"], "a | b"),
        (float | None, "a number or nothing"),
        (tuple[int, ...], "a list, each a whole number"),
        (Annotated[int, Field(ge=2)] | None, "a whole number at least 2 or nothing"),
        (tuple[Annotated[float, Field(gt=0, lt=1)], ...], "a list, each a number above 0 and below 1"),
        (Defence, "a kind of defence"),
        (Path, "Path"),
        (Any, "Any"),
    ],
)
def test_types_in_words(annotation: Any, words: str) -> None:
    assert describe_type(annotation) == words


def test_settings_of_a_class_and_of_a_value() -> None:
    from leaktight.defences import TopK

    assert any(line.startswith("share") and line.endswith("0.1") for line in settings(TopK))
    assert any(line.startswith("share") and line.endswith("0.5") for line in settings(TopK, TopK(share=0.5)))


def test_a_table_of_settings_keeps_to_the_width_if_words_allow_it() -> None:
    from leaktight.attacks import GradientMatching
    from leaktight.probes import VInformation

    for made in (GradientMatching, VInformation):
        lines = settings(made, width=70)
        assert max(map(len, lines)) <= 70
        assert " ".join(" ".join(settings(made, width=500)).split()) != " ".join(" ".join(lines).split())
    said = " ".join(" ".join(settings(VInformation)).split())
    assert "entries a whole number at least 1 or nothing None" in said
    assert "threat ThreatModel seat 'server', knows auxiliary and local_steps" in said


def test_labels_have_columns_of_their_own(made: Any) -> None:
    def reading_of(value: float, layer: str | None = None) -> tuple[Reading, ...]:
        common: dict[str, Any] = {"leaks": "high", "layer": layer, "n": 9}
        return (
            Reading(name="leak_auc", value=value, low=value - 0.01, high=value + 0.01, chance=0.5, **common),
            Reading(name="leak_auc_q95", value=value + 0.02, chance=0.6, **common),
        )

    auc = Reading(name="auc", value=0.8765, chance=0.5)
    leaky = made.record(psnr=None, accuracy=None, extra=(*reading_of(0.7), *reading_of(0.9, "linear1"), auc))
    refused = made.record(psnr=None, accuracy=None, label="other", status=Status.REFUSED, reason="no")
    shown = "\n".join(line.plain for line in table(summarise([leaky, refused]).rows, 100))
    for words in ("Leak AUC (95 %)", "95 % quantile", "test AUC 0.876", "0.90 (0.89 to 0.91)", "0.92", "refused"):
        assert words in shown
    assert "PSNR" not in shown


def test_the_terminal_says_which_searches_failed(made: Any) -> None:
    records = [
        made.record(psnr=38, extra=made.searches(0)),
        made.record(GaussianNoise(), psnr=9, extra=made.searches(3)),
    ]
    console, text = screen(terminal=False)
    show(records, console=console)
    _, heading, rest = text.getvalue().partition("Searches that failed")
    assert heading
    line = rest.splitlines()[1]
    assert (
        line
        == "- dlg2019 (batches of 1, before training): 3 of 8 (the truth fits better) under Gaussian noise (std 0.01)"
    )
    assert "no defence" not in line


def test_the_terminal_says_what_adds_up_over_passes(made: Any) -> None:
    common: dict[str, Any] = {"leaks": "high", "against": "raw", "n": 400, "chance": 0.5}

    def added(label: str, value: float) -> Record:
        readings = (
            Reading(name="leak_auc", value=0.6, low=0.58, high=0.62, **common),
            Reading(
                name="leak_auc_passes", value=value, low=value - 0.02, high=value + 0.02, each=(0.6, value), **common
            ),
            Reading(name="leak_auc_features", value=0.5),
        )
        return cast("Record", made.record(psnr=None, accuracy=None, label=label, extra=readings))

    console, text = screen(terminal=False)
    show([added("weak", 0.7), added("strong", 0.9)], console=console)
    lines = text.getvalue().split("Labels over passes")[1].splitlines()
    assert (
        lines[1]
        == "- No defence, strong, at the cut (2 passes): one message 0.60, all passes 0.90, features alone 0.50"
    )
    assert not [line for line in lines if "weak, at the cut" in line]


def test_the_words_come_first_and_images_before_labels(made: Any) -> None:
    console, text = screen(terminal=False)
    show(made.audit(), console=console)
    shown = text.getvalue()
    places = [
        shown.index(words)
        for words in ("Verdict, images:", "Verdict, labels:", "Advice:", "Numbers", "Reasons to doubt")
    ]
    assert places == sorted(places)
    assert "- Gaussian noise (std 0.001): reduced. 3 of 8 images" in shown


def test_only_a_bound_that_implies_something_is_green(made: Any) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=200, color_system="standard")
    notes = {"dp_sgd.epsilon": 1.0, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    weak = {**notes, "dp_sgd.epsilon": 8.0}
    records = [
        *made.two_principles(TopK()),
        made.record(DPSGD(), psnr=9, notes=notes, attack=made.ADAPTIVE, label="adaptive"),
    ]
    records.append(made.record(DPSGD(multiplier=0.1), psnr=9, notes=weak, attack=made.ADAPTIVE, label="adaptive"))
    show(records, console=console)
    green, red = "\x1b[1;32m", "\x1b[1;31m"
    assert text.getvalue().count(green) == 1
    assert f"DP-SGD (multiplier 1){green}: bounded." in text.getvalue()
    assert f"No defence{red}: leaks." in text.getvalue()
