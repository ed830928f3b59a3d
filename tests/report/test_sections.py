import base64
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from leaktight import models
from leaktight.attacks import preset
from leaktight.captures import AsCaptured, Captured
from leaktight.core.defence import Chain, Undefended
from leaktight.core.message import Kind, Message
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.core.run import Run
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Cifar, Csv, Digits, Factory, Idx, ImageFolder, Npz
from leaktight.defences import DPSGD, ClassKeys, GaussianNoise, Polarization, TopK, Transformation
from leaktight.findings.column import format_reading
from leaktight.findings.redaction import number_seeds, redact_records, without_places, without_seeds
from leaktight.learning.federated import Federated
from leaktight.models import DLNet
from leaktight.plans import quick, standard
from leaktight.report import render
from leaktight.report.findings import flags_section, policies_of, summary_section
from leaktight.report.numbers import checks_section, csv_address, table_section
from leaktight.report.page import Page
from leaktight.report.parameters import (
    in_words,
    knowable,
    lines_of,
    parameters_section,
    reproduce_section,
    threat_section,
)
from leaktight.testing import toy_task


@pytest.fixture
def page(made):
    def make(records, redact=False):
        return Page.of(records, made.plan(), made.VERSIONS, lambda key: None, redact)

    return make


def line(section, number):
    return dict(zip(section.values["heads"], section.values["lines"][number]["cells"], strict=True))


def test_the_table_shows_every_reading_with_its_interval(page, made):
    extra = (Reading(name="leak_auc", value=0.75, low=0.7, high=0.8),)
    notes = {"dp_sgd.epsilon": 3.21, "dp_sgd.delta": 1e-5, "dp_sgd.participations": 2.0}
    records = [
        made.record(psnr=38, labels=0.25),
        made.record(DPSGD(), psnr=10, accuracy=0.7, extra=extra, notes=notes),
    ]
    bare, private = (line(table_section(page(records)), number) for number in (0, 1))
    assert bare["images recognised"] == "100 % (68 to 100)"
    assert bare["PSNR, raw (dB)"] == "38.0 (36.5 to 39.5)"
    assert bare["labels read"] == "75 % (41 to 93)"
    assert bare["accuracy lost (points)"] == bare["privacy budget"] == "-"
    assert private["accuracy lost (points)"] == "10.0 (6.2 to 13.7)"
    assert private["privacy budget"] == (
        "epsilon at most 3.21 at delta 1e-05 (upper bound; no amplification by sampling: an example counts 2 times)"
    )
    assert private["leak AUC"] == "0.75 (0.70 to 0.80)"
    assert private["attack"] == "dlg2019"
    assert bare["judged by"] == "images recognised 100 % (68 to 100)"
    assert table_section(page(records)).values["constant"] == ["batch 1", "when before training"]
    assert table_section(page(records)).values["heads"][:3] == ["defence", "attack", "judged by"]


def test_what_a_plugin_brings_is_shown_as_it_says(page, made, toys):
    extra = (Reading(name="size", value=1.2345), Reading(name="turns", value=3.0, low=2.0, high=4.0))
    section = table_section(page([made.record(), made.record(toys.ToyNoise(std=0.5), extra=extra)]))
    bare, shown_as = line(section, 0), line(section, 1)
    assert shown_as["defence"] == "noise of the toys (std 0.5)"
    assert (shown_as["size of what was handed out (nats)"], shown_as["turns taken"]) == ("1.23", "3 (2 to 4)")
    assert bare["turns taken"] == "-"


def test_columns_that_say_nothing_new_are_left_out(page, made):
    plain = table_section(page([made.record()]))
    assert not {"scenario", "PSNR, used (dB)", "privacy budget", "labels read"} & set(plain.values["heads"])
    changed = table_section(page([made.record(used=25)]))
    assert "PSNR, used (dB)" in changed.values["heads"]
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    assert "scenario" in table_section(page([made.record(), made.record(scenario=other)])).values["heads"]


def test_the_rows_of_the_verdict_are_marked(page, made):
    records = [made.record(psnr=38), made.record(psnr=30, attack=made.GEIPING, label="geiping2020")]
    assert [one["judged"] for one in table_section(page(records)).values["lines"]] == [True, False]


def test_the_attack_of_a_suite_that_decides_has_a_row_of_its_own(page, made):
    team = {"attack": made.TEAM, "label": "team"}
    bare = made.record(psnr=38, extra=made.members({"simple": 38, "learned": 30}), **team)
    defended = made.record(TopK(), psnr=12, extra=made.members({"simple": 12, "learned": 30}), **team)
    shown = page([bare, defended])
    assert [one.worst.attack for one in shown.summary.judgements] == ["team", "learned"]
    lines = table_section(shown).values["lines"]
    assert [(line["cells"][1], line["judged"]) for line in lines] == [
        ("team", True),
        ("team", False),
        ("learned (of team)", True),
    ]
    assert [line["cells"][2] for line in lines] == [
        "images recognised 100 % (68 to 100)",
        "images recognised 0 % (0 to 32)",
        "images recognised 100 % (68 to 100)",
    ]


def test_labels_that_come_beside_images_mark_no_row_by_its_images(page, made):
    best = made.record(psnr=38, labels=0.5, label="search")
    other = made.record(psnr=12, labels=0.0, label="algebra")
    shown = page([best, other])
    assert [one.worst.attack for one in shown.summary.judgements] == ["search", "algebra"]
    lines = table_section(shown).values["lines"]
    assert {line["cells"][1]: line["judged"] for line in lines} == {"search": True, "algebra": False}


def test_a_reading_without_interval_is_a_number():
    assert format_reading(Reading(name="psnr", value=3.0), str) == "3.0"
    assert format_reading(None, str) == "-"


def test_checks_show_what_was_found_and_whether_it_passed(page, made):
    records = [made.control(), made.control(psnr=40, seed=1), made.null(), made.null(psnr=30, seed=1)]
    records.append(made.control(seed=2, status=Status.FAILED, reason="no memory"))
    checks = checks_section(page(records)).values["checks"]
    assert [check["result"] == "passed" for check in checks] == [True, False, True, False, False]
    assert "PSNR 7.0 dB (chance 11.0 dB)" in checks[2]["found"]
    assert checks[4]["found"] == "failed: no memory"


def test_nothing_passed_where_nothing_was_compared_with_chance(page, made):
    left = (Reading(name="objective", value=225.0, n=4), Reading(name="diverged", value=0, n=4))
    blind = made.record(psnr=None, accuracy=None, extra=left, purpose="null")
    [check] = checks_section(page([blind])).values["checks"]
    assert (check["result"], check["tone"]) == ("not graded", "unknown")
    assert "left with 225 of its objective" in check["found"]


def test_a_check_of_several_attacks_tells_their_answer_once(page, made):
    records = [made.null(attack=made.TEAM, label="team", extra=made.members({"search": 7.0, "simple": 6.0}))]
    [check] = checks_section(page(records)).values["checks"]
    assert check["found"].count("PSNR") == 1
    lucky = [made.null(attack=made.TEAM, label="team", extra=made.members({"search": 30.0}))]
    [check] = checks_section(page(lucky)).values["checks"]
    assert (check["found"].count("PSNR"), check["result"]) == (1, "not passed")


def test_the_theorem_stands_last_and_only_beside_its_section(page, made):
    alone = made.record(TopK(), extra=made.characteristic(5.0, 0.5, holds=0.5))
    assert not any("theorem" in head for head in table_section(page([made.record(), alone])).values["heads"])
    heads = table_section(page(made.sweep())).values["heads"]
    assert ["theorem" in head for head in heads[-4:]] == [True, True, False, False]
    assert not any("theorem" in head for head in heads[:-4])


def test_long_cells_are_folded(report, made):
    notes = {"dp_sgd.epsilon": 3.21, "dp_sgd.delta": 1e-5, "dp_sgd.participations": 2.0}
    shown = report([made.record(), made.record(DPSGD(), notes=notes)])
    assert '<td class="words">epsilon at most 3.21' in shown
    assert '<td class="words">38.0' not in shown


def test_notes_are_about_what_was_measured(page, made):
    assert not any("Batch norm" in note for note in summary_section(page([made.record()])).values["notes"])
    read = (Reading(name="statistics_error", value=0.001, chance=0.5, leaks="low", n=8),)
    assert any("Batch norm" in note for note in summary_section(page([made.record(extra=read)])).values["notes"])


def test_a_table_without_prices_has_no_column_for_them(report, made):
    shown = report([made.record(labels=0.25), made.record(TopK(), psnr=17, labels=0.5)])
    assert shown.count('<table class="verdicts sortable">') == 2
    assert shown.count('<th scope="col">price') == 1
    assert (shown.count('<td colspan="5">'), shown.count('<td colspan="4">')) == (2, 2)


def test_a_scenario_that_a_plan_only_numbers_is_named_by_its_kind(page, made):
    values = parameters_section(page([made.record()])).values
    assert [value["name"] for value in values["groups"]["Scenarios"]] == ["handmade"]


def test_where_nobody_judged_no_row_is_bold_and_nothing_says_so(page, report, made):
    left = (Reading(name="objective", value=1e-9, n=4), Reading(name="diverged", value=0, n=4))
    blind = made.record(psnr=None, accuracy=None, extra=left)
    assert not table_section(page([blind])).values["bold"]
    assert "Bold rows" not in report([blind], gallery=lambda key: None)
    assert "1 cell was measured" in report([blind], gallery=lambda key: None)


def test_a_page_about_captured_messages_speaks_of_no_training(report, made):
    captured = Captured(folder="recorded", model=models.Factory(function="package.module:function"))
    lead = re.search(
        r'<p class="lead">(.*?)</p>', report([made.record(psnr=None, scenario=captured)], gallery=lambda key: None)
    )[1]
    assert lead == "What these captured messages give away to an attacker who reads them."
    assert (
        "of this training"
        in re.search(r'<p class="lead">(.*?)</p>', report([made.record()], gallery=lambda key: None))[1]
    )


def test_a_table_can_be_saved_and_no_cell_becomes_a_formula():
    address = csv_address([["name", "n"], ["=1+1", "-2"]])
    text = base64.b64decode(address.partition("base64,")[2]).decode()
    assert text.splitlines() == ["name,n", "'=1+1,-2"]


def test_policies_are_told_in_words(page, made):
    records = [made.record(), made.record(Transformation(policy="8-21+0"), psnr=9)]
    assert policies_of(page(records)) == ["Policy 8-21+0: autocontrast, move sideways (level 5); or invert."]


def test_changed_presets_say_what_was_changed(page, made):
    changed = preset("dlg2019", iterations=10)
    [threat] = threat_section(page([made.record(attack=changed, label="dlg2019*")])).values["threats"]
    assert list(threat["attacks"]) == ["dlg2019, changed"]
    assert threat["attacks"]["dlg2019, changed"]["changed"].startswith("iterations 10 in place of ")


def test_nobody_knows_or_ignores_a_defence_that_nobody_declared(page, made):
    knowing = {"attack": made.ADAPTIVE, "label": "adaptive", "knows": (Knows.DEFENCE,)}
    for records in ([made.record(**knowing)], [made.record(**knowing), made.record(AsCaptured(), **knowing)]):
        for threat in threat_section(page(records)).values["threats"]:
            assert not any(
                "which defence" in said for words in ("knows", "withheld") for said in threat["words"][words]
            )
            assert not any(attack["defended"] for attack in threat["attacks"].values())
    [threat] = threat_section(page([made.record(TopK(), **knowing)])).values["threats"]
    assert "which defence is in use, and its settings" in threat["words"]["knows"]


def test_the_cells_of_a_changed_preset_say_so_too(page, made):
    changed = made.record(attack=preset("dlg2019", iterations=10), label="dlg2019*")
    [line] = parameters_section(page([changed])).values["lines"]
    assert line["label"] == "dlg2019, changed"


def test_an_attacker_who_takes_part_knows_the_defence_and_nobody_is_denied_what_there_is_not(page, made):
    told = in_words(ThreatModel(seat="client-1", knows=frozenset()), frozenset({Knows.DEFENCE, Knows.LABELS}), True)
    assert "which defence is in use, and its settings" in told["knows"]
    assert told["withheld"] == ["the true labels behind each message"]
    [threat] = threat_section(page([made.record()])).values["threats"]
    assert not any("class keys" in words for words in threat["words"]["withheld"])


def test_scenario_and_defence_say_what_there_is_to_know_besides(page, made):
    def known(**settings):
        return knowable(page([made.record(knows=(), **settings)]))

    usual = {Knows.LABELS, Knows.AUXILIARY}
    assert known() == usual
    assert known(scenario=Federated(data=Digits(), model=DLNet())) == usual | {Knows.LOCAL_STEPS}
    assert known(defence=Chain(links=(ClassKeys(), GaussianNoise()))) == usual | {Knows.DEFENCE, Knows.KEYS}


def test_what_a_defence_leaves_open_by_design_is_said_whatever_was_measured(page, made, report):
    chain = Chain(links=(Polarization(), GaussianNoise()))
    opened = threat_section(page([made.record(), made.record(chain)])).values["open"]
    assert opened == {"Polarization network": Polarization.leaves_open}
    assert "A linear first layer with bias gives a single example away exactly" in report([made.record(chain)])
    assert threat_section(page([made.record(GaussianNoise())])).values["open"] == {}


def test_controls_are_named_among_the_parameters(page, made):
    values = parameters_section(page([made.control(), made.record()])).values
    names = [value["name"] for value in values["groups"]["Attacks and measures"]]
    assert "(for control cells)" not in names[0]
    assert any("(for control cells)" in name for name in names)


def test_the_summary_holds_each_sentence_once(page, made):
    found = page(made.audit())
    sheet = summary_section(found).values["sheet"]
    assert [group.heading for group in sheet.groups] == ["Images", "Labels"]
    shown = [f"{one.name}: {one.word}. {one.sentence}" for group in sheet.groups for one in group.lines]
    assert sorted(shown) == sorted(found.summary.verdict)
    assert summary_section(page([])).values["sheet"].headline == "Nothing was measured, so nothing can be said."


def test_flags_come_with_counts(page, made):
    values = flags_section(page(made.audit())).values
    assert values["counts"] == {"done": 18, "refused": 1, "failed": 1}
    assert values["flags"]


def test_a_threat_is_told_by_what_it_knows_and_what_not():
    told = in_words(ThreatModel(seat="wire", knows=frozenset({Knows.LABELS})))
    assert told["seat"].startswith("someone on the wire")
    assert told["knows"] == ["how many examples are behind each message", "the true labels behind each message"]
    assert len(told["withheld"]) == len(Knows) - 1


@pytest.mark.parametrize("knows", [frozenset(), frozenset(Knows)])
def test_what_is_told_to_be_known_is_what_the_attacker_sees(knows):
    """The number of examples is in every view, whatever the threat model withholds; that of local steps is not."""
    threat = ThreatModel(knows=knows)
    message = Message(Kind.UPDATE, "client-0", "server", 0, {}, {"examples": 8.0, "local_steps": 2.0})
    run = Run((message,), toy_task(), Undefended(), {})
    seen, told = threat.view(run).messages[0].facts, in_words(threat)
    assert "examples" in seen
    assert any("how many examples" in words for words in told["knows"])
    assert not any("how many examples" in words for words in told["withheld"])
    steps = "knows" if "local_steps" in seen else "withheld"
    assert any("how many local steps" in words for words in told[steps])


def test_attacks_are_grouped_by_threat_and_adaptive_ones_named(page, made):
    records = [
        made.record(),
        made.record(TopK(), attack=made.ADAPTIVE, label="adaptive", knows=(Knows.DEFENCE,)),
        made.control(),
    ]
    first, second = threat_section(page(records)).values["threats"]
    assert list(first["attacks"]) == ["dlg2019"]
    assert first["attacks"]["dlg2019"]["goals"] == ["rebuild the examples", "read off the labels"]
    assert second["attacks"]["adaptive"] == {
        "gist": "Knows the defence and models it.",
        "goals": ["rebuild the examples"],
        "models": "top-k",
        "defended": True,
        "changed": "",
    }
    assert first["attacks"]["dlg2019"]["models"] == ""


def test_where_there_is_no_defence_no_attack_is_said_to_ignore_it(page, made):
    [threat] = threat_section(page([made.record()])).values["threats"]
    assert not threat["attacks"]["dlg2019"]["defended"]


def test_each_setting_is_listed_once_and_each_cell_points_to_it(page, made):
    records = [
        made.record(),
        made.record(seed=1),
        made.record(TopK(share=0.2), status=Status.REFUSED, reason="not here"),
    ]
    values = parameters_section(page(records)).values
    assert [value["mark"] for value in values["groups"]["Defences"]] == ["D1", "D2"]
    assert ("share", "0.2") in values["groups"]["Defences"][1]["settings"]
    assert [one["marks"] for one in values["lines"]] == [["S1", "D1", "A1"], ["S1", "D1", "A1"], ["S1", "D2", "A1"]]
    assert values["lines"][2]["reason"] == "not here"


def test_settings_are_flattened_with_lists_of_settings():
    nested = {"links": [{"kind": "top_k", "share": 0.1}], "names": ["a", "b"], "on": True}
    assert lines_of(nested) == [
        ("links.0.kind", "top_k"),
        ("links.0.share", "0.1"),
        ("names", '["a", "b"]'),
        ("on", "true"),
    ]


def test_how_to_make_it_again(page, made):
    values = reproduce_section(page(made.audit(seeds=(3, 4)))).values
    assert values["seeds"] == (0, 3, 4)
    assert values["versions"] == made.VERSIONS
    assert '"path": "patients/anna/photos.npz"' in values["plan"]
    assert "anna" not in reproduce_section(page(made.audit(), redact=True)).values["plan"]


def test_redaction_drops_single_values_and_single_examples(made):
    ratio = Reading(name="gradient_ratio", value=2.5, n=1, against="raw")
    lone = (Reading(name="odd", value=1.5, n=1, leaks="high"), Reading(name="rounds", value=3, n=1), ratio)
    failed = made.record(GaussianNoise(), status=Status.FAILED, reason="secret")
    refused = made.record(GaussianNoise(std=1), status=Status.REFUSED, reason="labels needed")
    first, second, third = redact_records([made.record(extra=lone), failed, refused])
    assert all(reading.each == () for reading in first.readings)
    assert first.reading("odd") is None
    assert first.reading("gradient_ratio") is None
    assert first.reading("rounds").value == 3
    assert first.reading("psnr").value == 30
    assert "secret" not in second.reason
    assert third.reason == "labels needed"


def test_a_redacted_page_has_no_seed_nor_a_hash_of_one(made, report):
    seeds = (86753091, 90210734)
    plan = made.plan(seeds=seeds)
    records = [made.record(cell.defence, purpose=cell.purpose, seed=cell.seed) for cell in plan.cells()]
    whole, passable = (report(records, plan=plan, redact=redact) for redact in (False, True))
    keys = {record.cell.key for record in records}
    assert all(str(seed) in whole for seed in seeds)
    assert all(key in whole for key in keys)
    assert not any(str(seed) in passable for seed in seeds)
    assert not any(key in passable for key in keys)
    assert "&#34;seeds&#34;: &#34;withheld&#34;" in passable
    assert "2 seeds, whose values are withheld" in passable


def test_seeds_are_numbered_so_that_trainings_stay_apart_and_cells_are_not_missing(made):
    plan = made.plan(seeds=(9, 4, 7))
    records = [made.record(seed=seed) for seed in (4, 7)]
    numbers = number_seeds(plan.grid.seeds)
    shown, told = redact_records(records, numbers), without_seeds(plan, numbers)
    assert [record.cell.seed for record in shown] == [2, 3]
    assert told.grid.seeds == (1, 2, 3)
    whole, passable = (
        Page.of(found, one, made.VERSIONS, lambda key: None, redact)
        for found, one, redact in ((records, plan, False), (shown, told, True))
    )
    assert whole.missing == passable.missing > 0
    assert [row.seeds for row in passable.summary.rows] == [(2, 3)]


def test_nothing_is_green_because_attacks_failed(page, made):
    """Checks that pass, a redacted page and an epsilon that implies something may be green; what rests on attacks is grey at best."""
    notes = {"dp_sgd.epsilon": 1.0, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    bounded = [
        made.record(
            DPSGD(multiplier=strength),
            psnr=9,
            notes={**notes, "dp_sgd.epsilon": epsilon},
            label="adaptive",
            attack=made.ADAPTIVE,
        )
        for strength, epsilon in ((1.0, 1.0), (0.5, 6.0))
    ]
    useless = made.record(GaussianNoise(), psnr=9, accuracy=0.1, label="adaptive", attack=made.ADAPTIVE)
    records = [made.control(), made.null(), *made.two_principles(TopK(), accuracy=0.75), *bounded, useless]
    [group] = summary_section(page(records)).values["sheet"].groups
    assert [(one.name.split(" ")[0], one.word, one.tone, one.useless) for one in group.lines] == [
        ("No", "leaks", "leaks", False),
        ("DP-SGD", "bounded", "good", False),
        ("Top-k", "not broken", "not-broken", False),
        ("DP-SGD", "bounded", "bounded", False),
        ("Gaussian", "useless", "useless", True),
    ]
    style = (Path(render.__globals__["__file__"]).parent / "page.css").read_text()
    [green] = re.findall(r"^(.*) \{[^}]*--tone: var\(--good\)", style, re.MULTILINE)
    assert green == ".passed, .good"
    assert re.search(r"^\.bounded, \.not-broken, \.unknown, .*--tone: var\(--soft\)", style, re.MULTILINE)


@pytest.mark.parametrize(
    "source",
    [
        Npz(path="patients/anna/scans.npz"),
        Npz(path=Path("/home/anna/scans.npz"), size=8),
        ImageFolder(path="anna"),
        Cifar(path="~/anna"),
        Csv(path="anna.csv", test_path="anna/test.csv"),
        Idx(path="../anna", train_images="anna/images", test_labels=r"C:\anna\labels"),
    ],
    ids=str,
)
def test_places_are_known_by_their_type_and_withheld_whole(source):
    scenario = Federated(data=source, model=DLNet(), rounds=0)
    told = without_places(scenario)
    assert "anna" in json.dumps(scenario.to_dict())
    assert "anna" not in json.dumps(told)
    assert told["data"]["kind"] == source.kind
    assert told["data"]["path"] == "withheld"
    assert told["model"] == scenario.to_dict()["model"]


def test_what_only_looks_like_a_place_stays():
    told = without_places(Factory(function="package.module:function"))
    assert told == Factory(function="package.module:function").to_dict()
    assert without_places(Idx(path="a"))["train_images"] == ""
    assert without_places(Npz(path="a", x="/images", y="/labels"))["x"] == "/images"


@pytest.mark.parametrize("plan", [quick(), standard()], ids=["quick", "standard"])
def test_nothing_but_places_is_left_out_of_settings(plan):
    assert without_places(plan) == plan.to_dict()


def test_names_of_classes_are_on_no_page(tmp_path, report, made):
    """A class may be named after a person; a page numbers classes, and withholds what a failure said about them."""
    for name in ("anna", "bert"):
        (tmp_path / name).mkdir()
        for number in range(3):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / name / f"{number}.png")
    source = ImageFolder(path=tmp_path, size=8)
    assert source.load().names == ("anna", "bert")
    scenario = Federated(data=source, model=DLNet(), rounds=0)
    records = [
        made.record(scenario=scenario),
        made.record(
            TopK(), scenario=scenario, status=Status.FAILED, reason="The class folder `anna` must hold images."
        ),
    ]
    page = report(records, redact=True)
    assert "anna" not in page
    assert str(tmp_path) not in page


def test_a_utility_that_is_not_accuracy_has_columns_of_its_own(page, made):
    def auc(value):
        return (Reading(name="auc", value=value, low=value - 0.1, high=value + 0.1, chance=0.5),)

    other = {"scenario": made.Handmade.model_construct(kind="handmade", rounds=7)}
    records = [
        made.record(),
        made.record(accuracy=None, extra=auc(0.8), **other),
        made.record(TopK(), accuracy=None, extra=auc(0.7), **other),
    ]
    section = table_section(page(records))
    first, second, third = (line(section, number) for number in range(3))
    assert (first["accuracy"][:4], first["test AUC"]) == ("80 %", "-")
    assert (second["accuracy"], second["test AUC"]) == ("-", "0.800 (0.700 to 0.900)")
    assert third["test AUC lost (points)"].startswith("10.0 (")
    assert section.values["heads"].count("test AUC") == 1
