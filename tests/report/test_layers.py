"""Where the leak sits: a panel for each measure over the layers, a figure for each defence, the same numbers in a table."""

import re

import pytest

from leaktight.attacks import PropertyInference
from leaktight.core.metric import Reading
from leaktight.data import ClassProperty, Parity
from leaktight.defences import GaussianNoise
from leaktight.findings.layer_risk import LayerRow
from leaktight.findings.redaction import redact_records
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.probes import MutualInformation, Sensitivity, VInformation
from leaktight.report.findings import glossary_section, summary_section
from leaktight.report.layers import chart_of, layers_section, measures_of
from leaktight.report.numbers import checks_section, table_section
from leaktight.report.page import Page
from leaktight.report.parameters import threat_section
from leaktight.report.tradeoff import tradeoff_section

LAYERS = ("body.conv1", "body.conv2", "body.linear1", "head")
SCENARIO = Federated(data=Parity(), model=MLP())
WEAK, STRONG = GaussianNoise(std=0.01), GaussianNoise(std=0.1)
TOLD = {None: (0.6, 0.7, 0.95, 0.9), WEAK: (0.55, 0.6, 0.8, 0.7), STRONG: (0.5, 0.5, 0.53, 0.5)}


def layered(name, values, spread=0.05, chance=None, n=40):
    return tuple(
        Reading(
            name=name,
            value=value,
            low=value - spread,
            high=value + spread,
            n=n,
            chance=chance,
            leaks="high",
            layer=layer,
            each=(value,) * 3,
        )
        for layer, value in zip(LAYERS, values, strict=True)
    )


def whole(name, value, chance):
    return layered(name, (value,) * len(LAYERS), chance=chance)[0].model_copy(update={"layer": None})


@pytest.fixture
def records(made):
    """What five measures say of four layers, without a defence and with noise of two strengths."""
    found = []
    for (defence, told), accuracy in zip(TOLD.items(), (0.9, 0.88, 0.8), strict=True):
        place = {"scenario": SCENARIO, "batch_size": 16, "stage": "training", "psnr": None, "accuracy": accuracy}
        attack = (whole("property_auc", max(told) - 0.02, 0.5), *layered("property_auc", told, chance=0.5))
        information = (
            whole("v_information_share", 0.4, 0.0),
            *layered("v_information_share", (0.1, 0.2, 0.6, 0.4), chance=0.0),
        )
        usable = (*information, *layered("v_information", (0.07, 0.14, 0.42, 0.28), chance=0.0))
        change = layered("sensitivity_f", (4.0, 1.0, 2.0, 3.0)) + layered("sensitivity_f_share", (0.4, 0.1, 0.2, 0.3))
        passed = layered("mutual_information_lower_share", (0.9, 0.8, 0.7, 0.2), spread=0)
        passed += layered("mutual_information_upper_share", (1.0, 0.95, 0.9, 0.4), spread=0)
        found += [
            made.record(defence, attack=PropertyInference(layers="each"), label="property", extra=attack, **place),
            made.record(defence, probe=VInformation(), label="usable", extra=usable, **place),
            made.record(defence, probe=Sensitivity(), label="sensitivity", extra=change, **place),
            made.record(defence, probe=MutualInformation(), label="mutual", extra=passed, **place),
        ]
        for layer, psnr in zip(LAYERS, (30.0, 24.0, 18.0, 9.0), strict=True):
            one = made.GEIPING.model_copy(update={"layers": (layer,)})
            found.append(made.record(defence, attack=one, label=f"invert {layer}", **{**place, "psnr": psnr}))
    return found


@pytest.fixture
def page(made):
    def make(records, redact=False):
        return Page.of(
            redact_records(records) if redact else records, made.plan(), made.VERSIONS, lambda key: None, redact
        )

    return make


def row(layer, **values):
    return LayerRow(layer, {name: Reading(name=name, value=value, layer=layer) for name, value in values.items()})


def test_a_figure_for_each_defence_undefended_first(page, records):
    section = layers_section(page(records))
    (block,) = section.values["blocks"]
    assert [figure.caption for figure in block["figures"]] == [
        "No defence",
        "Gaussian noise (std 0.01)",
        "Gaussian noise (std 0.1)",
    ]
    assert (section.title, block["setting"], block["left"]) == (
        "Where the leak sits",
        "batches of 16, throughout training",
        0,
    )


def charts(section):
    return [figure.chart for block in section.values["blocks"] for figure in block["figures"]]


def told_in(panel):
    return [point.y for point in panel.series[0].points]


def test_a_panel_for_each_measure_over_the_same_layers(page, records):
    chart = charts(layers_section(page(records)))[0]
    assert [panel.y.title for panel in chart.panels] == [
        "property AUC",
        "V-information of the property / log 2",
        "sensitivity (F), share of all layers",
        "mutual information / log\N{SUBSCRIPT TWO} N",
        "PSNR of inversion (dB)",
    ]
    assert [text for _, text in chart.x.ticks] == ["conv1", "conv2", "linear1", "head"]
    told, usable, change, passed, rebuilt = map(told_in, chart.panels)
    assert told == [0.6, 0.7, 0.95, 0.9]
    assert (usable, change, rebuilt) == ([0.1, 0.2, 0.6, 0.4], [0.4, 0.1, 0.2, 0.3], [30.0, 24.0, 18.0, 9.0])
    assert passed == [1.0, 0.95, 0.9, 0.4]
    assert [point.low for point in chart.panels[3].series[0].points] == pytest.approx([0.9, 0.8, 0.7, 0.2])
    assert [point.high for point in chart.panels[0].series[0].points] == pytest.approx([0.65, 0.75, 1.0, 0.95])


def test_chance_is_dashed_where_it_is_not_nothing(page, records):
    chart = charts(layers_section(page(records)))[0]
    assert [panel.level for panel in chart.panels] == [0.5, None, None, None, 11.0]


@pytest.mark.parametrize(
    ("kept", "axes"),
    [
        (("property",), ["property AUC"]),
        (("sensitivity",), ["sensitivity (F), share of all layers"]),
        (
            ("usable", "mutual"),
            ["V-information of the property / log 2", "mutual information / log\N{SUBSCRIPT TWO} N"],
        ),
        (tuple(f"invert {layer}" for layer in LAYERS), ["PSNR of inversion (dB)"]),
    ],
)
def test_any_part_of_the_measures_is_enough(page, records, kept, axes):
    some = [record for record in records if record.cell.label in kept]
    section = layers_section(page(some))
    assert [panel.y.title for panel in charts(section)[0].panels] == axes
    assert section.values["blocks"][0]["said"][0]["sentences"]


def test_chance_levels_of_single_layers_are_ticks_and_words_speak_of_what_is_drawn(report, made):
    def chart(chances):
        rows = [
            LayerRow(layer, {"psnr": Reading(name="psnr", value=20.0, low=19.0, high=21.0, chance=chance)})
            for layer, chance in zip(LAYERS, chances, strict=True)
        ]
        [panel] = chart_of(rows).panels
        return panel.level, [point.chance for point in panel.series[0].points]

    assert chart((12.0,) * 4) == (12.0, [None] * 4)
    assert chart((12.0, 11.0, 12.0, 12.0)) == (None, [12.0, 11.0, 12.0, 12.0])
    dashes = "Dashes are what guessing gets"
    place = {"scenario": SCENARIO, "psnr": None, "attack": PropertyInference(layers="each")}
    for chance in (0.5, 0.0):
        told = layered("property_auc", (0.6, 0.7, 0.9, 0.8), chance=chance)
        assert (dashes in report([made.record(extra=told, **place)], gallery=lambda key: None)) == bool(chance)


def test_layers_that_lack_a_measure_are_left_open():
    rows = [row("a", property_auc=0.6, psnr=9.0), row("b", property_auc=0.7), row("c", psnr=12.0)]
    chart = chart_of(rows)
    assert [[point.x for point in panel.series[0].points] for panel in chart.panels] == [[0, 1], [0, 2]]
    assert [text for _, text in chart.x.ticks] == ["a", "b", "c"]


def test_wide_intervals_do_not_hide_the_values():
    values = {"v_information_share": (0.2, -3.0, 1.0)}
    rows = [
        LayerRow(
            "a", {name: Reading(name=name, value=v, low=low, high=high) for name, (v, low, high) in values.items()}
        )
    ]
    axis = chart_of(rows).panels[0].y
    low, high = axis.low, axis.high
    assert -0.7 < low < 0
    assert 1 < high < 1.2


def test_the_sentences_name_layers_and_what_goes_along(page, records):
    first, weak, strong = layers_section(page(records)).values["blocks"][0]["said"]
    assert first["sentences"][0].startswith("By itself body.linear1 best tells whether")
    assert [sentence.partition(" (")[0] for sentence in first["sentences"][1:]] == [
        "Over 4 layers, V-information goes along with property AUC",
        "Over 4 layers, sensitivity",
    ]
    assert (weak["name"], len(weak["sentences"])) == ("Gaussian noise (std 0.01)", 1)
    assert strong["sentences"][0].startswith("No layer by itself tells whether")


def test_the_table_has_the_same_numbers_and_all_layers_together(page, records):
    table = layers_section(page(records)).values["blocks"][0]["table"]
    assert table["heads"][:2] == ["property AUC", "V-information of the property / log 2"]
    bare = table["groups"][0]
    assert [line["name"] for line in bare["lines"]] == [*LAYERS, "whole message"]
    cells = [[cell["text"] for cell in line["cells"]] for line in bare["lines"]]
    assert cells[0] == [
        "0.60 (0.55 to 0.65)",
        "0.10 (0.05 to 0.15)",
        "0.40 (0.35 to 0.45)",
        "0.900 to 1.000",
        "30.0 (28.5 to 31.5)",
    ]
    assert cells[4] == ["0.93 (0.88 to 0.98)", "0.40 (0.35 to 0.45)", "-", "-", "-"]
    assert [line["cells"][0]["top"] for line in bare["lines"]] == [False, False, True, True, False]
    assert [line["cells"][0]["tone"] for line in table["groups"][2]["lines"]] == [""] * 5


def test_nothing_is_minus_nothing(page, records):
    some = [record for record in records if record.cell.label == "usable"]
    tiny = [r.model_copy(update={"value": -0.001, "low": -0.002, "high": 0.001}) for r in some[0].readings if r.layer]
    table = layers_section(page([some[0].model_copy(update={"readings": tuple(tiny)})])).values["blocks"][0]["table"]
    assert table["groups"][0]["lines"][0]["cells"][0]["text"] == "0.00 (0.00 to 0.00)"


def test_settings_stand_apart(page, records):
    later = [r.model_copy(update={"cell": r.cell.model_copy(update={"stage": "end"})}) for r in records]
    section = layers_section(page([*records, *later]))
    assert [block["setting"] for block in section.values["blocks"]] == [
        "batches of 16, after training",
        "batches of 16, throughout training",
    ]
    assert (section.values["several"], len(charts(section))) == (True, 6)


def test_more_defences_than_figures_are_in_the_table(page, made):
    defences = [None, *(GaussianNoise(std=number / 100) for number in range(1, 15))]
    told = layered("property_auc", (0.6, 0.7, 0.9, 0.8), chance=0.5)
    section = layers_section(
        page([made.record(d, psnr=None, attack=PropertyInference(), extra=told) for d in defences])
    )
    assert (len(charts(section)), section.values["blocks"][0]["left"]) == (12, 3)
    assert len(section.values["blocks"][0]["table"]["groups"]) == 15


def test_a_class_in_the_place_of_the_property_is_called_a_label(page, made):
    scenario = Federated(data=ClassProperty(data=Parity(), label=1), model=MLP())
    told = (whole("property_auc", 0.8, 0.5), *layered("property_auc", (0.6, 0.7, 0.9, 0.8), chance=0.5))
    found = [made.record(psnr=None, attack=PropertyInference(), scenario=scenario, extra=told)]
    block = layers_section(page(found)).values["blocks"][0]
    assert block["table"]["heads"] == ["label AUC"]
    assert block["table"]["groups"][0]["lines"][-1]["cells"][0]["text"] == "0.80 (0.75 to 0.85)"
    assert "whether the examples behind a message are of class 1" in block["said"][0]["sentences"][0]


def test_an_audit_without_layers_has_no_such_section(page, made):
    assert layers_section(page(made.audit())) is None
    assert layers_section(page([])) is None
    assert measures_of([]) == []


def test_a_redacted_report_keeps_it(page, records):
    kept, shown = (layers_section(page(records, redact=redact)) for redact in (True, False))
    assert charts(kept) == charts(shown)
    assert kept.values["blocks"][0]["table"] == shown.values["blocks"][0]["table"]


def test_the_trade_off_is_accuracy_against_property_auc(page, records):
    section = tradeoff_section(page([record for record in records if record.cell.label == "property"]))
    figures = section.values["figures"]
    assert {figure.name: figure.caption for figure in figures} == {
        "plot-tradeoff-1-property": "Accuracy against property AUC",
        "plot-strength-1-property-0": "Gaussian noise: property AUC over strength",
    }
    panel = figures[0].chart.panels[0]
    noise, bare = panel.series
    assert [point.x for point in noise.points] == pytest.approx([88.0, 80.0])
    assert [point.y for point in noise.points] == pytest.approx([0.78, 0.51])
    assert [point.y for point in bare.points] == pytest.approx([0.93])
    assert (panel.y.title, panel.level) == ("property AUC", 0.5)
    assert "property AUC: 0.930, the whole message" in bare.points[0].tip
    assert [text for _, text in figures[1].chart.x.ticks] == ["none", "0.01", "0.1"]


def test_images_and_property_have_trade_offs_of_their_own(page, records):
    captions = {figure.name: figure.caption for figure in tradeoff_section(page(records)).values["figures"]}
    assert captions["plot-tradeoff-1-images"] == "Accuracy against leakage"
    assert captions["plot-tradeoff-1-property"] == "Accuracy against property AUC"


def test_the_rest_of_the_page_speaks_of_the_property(page, records):
    found = page([record for record in records if not record.cell.label.startswith("invert")])
    [group] = summary_section(found).values["sheet"].groups
    assert group.lines[0].leak == "0.93"
    assert group.measure == "AUC, how well it is told whether examples have the property `6 or more`"
    values = glossary_section(found).values
    assert list(values["kinds"]) == ["Property AUC"]
    assert values["accuracy"]
    assert values["layered"] == ["v_information", "sensitivity", "mutual_information"]
    (threat,) = threat_section(found).values["threats"]
    assert threat["attacks"]["property"]["goals"] == ["tell a private property"]


def test_what_layers_say_without_an_attack_is_not_in_the_table_of_every_number(page, records):
    section = table_section(page(records))
    assert {line["cells"][1] for line in section.values["lines"]} == {
        "property",
        *(f"invert {layer}" for layer in LAYERS),
    }
    assert "property AUC" in section.values["heads"]
    assert not [title for title in section.values["heads"] if "sensitivity" in title or "V-information" in title]
    assert section.values["layers"]
    assert table_section(page([record for record in records if record.cell.label == "sensitivity"])) is None


def test_checks_show_attacks_on_noise_by_layer_and_nothing_else(page, made):
    told = (whole("property_auc", 0.51, 0.5), *layered("property_auc", (0.5, 0.5, 0.9, 0.5), chance=0.5))
    null = made.record(psnr=None, attack=PropertyInference(), label="property", purpose="null", extra=told)
    public = made.record(
        psnr=None,
        probe=Sensitivity(),
        label="s",
        purpose="null",
        extra=layered("property_sensitivity_f", (9.0,) * 4, chance=1.0),
    )
    (check,) = checks_section(page([null, public])).values["checks"]
    assert check["found"].startswith("property AUC 0.51 (chance 0.50); property AUC of body.conv1 0.50 (chance 0.50)")
    assert check["result"] == "not passed"


@pytest.mark.parametrize("redact", [False, True])
def test_the_page_shows_it_all(report, records, redact):
    text = report(records, redact=redact, gallery=lambda key: None)
    for words in (
        "Where the leak sits",
        "Property AUC</dt>",
        "V-information</dt>",
        "Sensitivity</dt>",
        "Mutual information</dt>",
    ):
        assert words in text
    assert "What is about one layer stands under" in text
    assert len(re.findall(r'id="plot-layers-', text)) == 3


def test_the_page_of_another_audit_does_not_speak_of_it(whole):
    text = str(whole)
    for words in ("Where the leak sits", "Property AUC</dt>", "V-information</dt>"):
        assert words not in text
