"""Where the leak sits: a panel for each measure over the layers, a figure for each defence, the same numbers in a table."""

import json
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
from leaktight.report.findings import glossary_section, tiles
from leaktight.report.layers import figure_of, layers_section, panels_of
from leaktight.report.numbers import checks_section, table_section
from leaktight.report.page import Page
from leaktight.report.plots import tradeoff_section
from leaktight.report.settings import threat_section

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
    assert list(block["captions"].values()) == ["No defence", "Gaussian noise (std 0.01)", "Gaussian noise (std 0.1)"]
    assert list(section.plots) == list(block["captions"])
    assert (section.title, block["setting"], block["left"]) == (
        "Where the leak sits",
        "batches of 16, throughout training",
        0,
    )


def test_a_panel_for_each_measure_over_the_same_layers(page, records):
    figure = next(iter(layers_section(page(records)).plots.values()))
    axes = [figure["layout"][name]["title"]["text"] for name in ("yaxis", "yaxis2", "yaxis3", "yaxis4", "yaxis5")]
    assert axes == ["property AUC", "V, property", "sensitivity", "mutual inf.", "PSNR (dB)"]
    assert [list(trace["x"]) for trace in figure["data"]] == [["conv1", "conv2", "linear1", "head"]] * 5
    told, usable, change, passed, rebuilt = (list(trace["y"]) for trace in figure["data"])
    assert told == [0.6, 0.7, 0.95, 0.9]
    assert (usable, change, rebuilt) == ([0.1, 0.2, 0.6, 0.4], [0.4, 0.1, 0.2, 0.3], [30.0, 24.0, 18.0, 9.0])
    assert passed == [1.0, 0.95, 0.9, 0.4]
    assert list(figure["data"][3]["error_y"]["arrayminus"]) == pytest.approx([0.1, 0.15, 0.2, 0.2])
    assert list(figure["data"][0]["error_y"]["array"]) == pytest.approx([0.05] * 4)


def test_chance_is_dashed_where_it_is_not_nothing(page, records):
    figure = next(iter(layers_section(page(records)).plots.values()))
    dashed = [(shape["yref"], shape["y0"]) for shape in figure["layout"]["shapes"]]
    assert dashed == [("y", 0.5), ("y5", 11.0)]


def test_a_figure_is_plain_data(page, records):
    for figure in layers_section(page(records)).plots.values():
        assert "template" not in figure["layout"]
        json.dumps(figure, default=list)


@pytest.mark.parametrize(
    ("kept", "axes"),
    [
        (("property",), ["property AUC"]),
        (("sensitivity",), ["sensitivity"]),
        (("usable", "mutual"), ["V, property", "mutual inf."]),
        (tuple(f"invert {layer}" for layer in LAYERS), ["PSNR (dB)"]),
    ],
)
def test_any_part_of_the_measures_is_enough(page, records, kept, axes):
    some = [record for record in records if record.cell.label in kept]
    section = layers_section(page(some))
    figure = section.plots["plot-layers-0-0"]
    assert [value["title"]["text"] for name, value in figure["layout"].items() if name.startswith("yaxis")] == axes
    assert section.values["blocks"][0]["said"][0]["sentences"]


def test_layers_that_lack_a_measure_are_left_open():
    rows = [row("a", property_auc=0.6, psnr=9.0), row("b", property_auc=0.7), row("c", psnr=12.0)]
    figure = figure_of(rows)
    assert [list(trace["x"]) for trace in figure["data"]] == [["a", "b"], ["a", "c"]]
    assert list(figure["layout"]["xaxis"]["categoryarray"]) == ["a", "b", "c"]


def test_wide_intervals_do_not_hide_the_values():
    values = {"v_information_share": (0.2, -3.0, 1.0)}
    rows = [
        LayerRow(
            "a", {name: Reading(name=name, value=v, low=low, high=high) for name, (v, low, high) in values.items()}
        )
    ]
    low, high = figure_of(rows)["layout"]["yaxis"]["range"]
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
    assert [line["name"] for line in bare["lines"]] == [*LAYERS, "all layers together"]
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
    assert (section.values["several"], len(section.plots)) == (True, 6)


def test_more_defences_than_figures_are_in_the_table(page, made):
    defences = [None, *(GaussianNoise(std=number / 100) for number in range(1, 15))]
    told = layered("property_auc", (0.6, 0.7, 0.9, 0.8), chance=0.5)
    section = layers_section(
        page([made.record(d, psnr=None, attack=PropertyInference(), extra=told) for d in defences])
    )
    assert (len(section.plots), section.values["blocks"][0]["left"]) == (12, 3)
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
    assert panels_of([]) == []


def test_a_redacted_report_keeps_it(page, records):
    kept, shown = (layers_section(page(records, redact=redact)) for redact in (True, False))
    assert kept.plots.keys() == shown.plots.keys()
    assert kept.values["blocks"][0]["table"] == shown.values["blocks"][0]["table"]


def test_the_trade_off_is_accuracy_against_property_auc(page, records):
    section = tradeoff_section(page([record for record in records if record.cell.label == "property"]))
    assert section.values["captions"] == {
        "plot-tradeoff-1-property": "Accuracy against property AUC",
        "plot-strength-1-property-0": "Gaussian noise: property AUC over strength",
    }
    figure = section.plots["plot-tradeoff-1-property"]
    noise, bare = figure["data"]
    assert (list(noise["x"]), list(noise["y"])) == (pytest.approx([88.0, 80.0]), pytest.approx([0.78, 0.51]))
    assert (list(bare["y"]), list(noise["text"])) == ([pytest.approx(0.93)], ["0.01", "0.1"])
    assert figure["layout"]["yaxis"]["title"]["text"] == "property AUC"
    assert figure["layout"]["shapes"][0]["y0"] == 0.5
    assert "property AUC: 0.930, all layers together" in bare["customdata"][0]
    assert list(section.plots["plot-strength-1-property-0"]["data"][0]["x"]) == ["none", "0.01", "0.1"]


def test_images_and_property_have_trade_offs_of_their_own(page, records):
    captions = tradeoff_section(page(records)).values["captions"]
    assert captions["plot-tradeoff-1-images"] == "Accuracy against leakage"
    assert captions["plot-tradeoff-1-property"] == "Accuracy against property AUC"


def test_the_rest_of_the_page_speaks_of_the_property(page, records):
    found = page([record for record in records if not record.cell.label.startswith("invert")])
    tile = tiles(found)[0]
    assert tile["figure"] == "0.93"
    assert tile["label"] == "AUC, how well it is told whether examples have the private property without defence"
    values = glossary_section(found).values
    assert list(values["kinds"]) == ["Property AUC"]
    assert values["accuracy"]
    assert values["layered"] == ["v_information", "sensitivity", "mutual_information"]
    (threat,) = threat_section(found).values["threats"]
    assert threat["attacks"]["property"]["wants"] == ["tell a private property"]


def test_what_layers_say_without_an_attack_is_not_in_the_table_of_every_number(page, records):
    section = table_section(page(records))
    assert {line["place"][0] for line in section.values["lines"]} == {
        "property",
        *(f"invert {layer}" for layer in LAYERS),
    }
    assert "property AUC" in section.values["columns"]
    assert not [title for title in section.values["columns"] if "sensitivity" in title or "V-information" in title]
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
    assert check["found"].startswith("property AUC 0.51 (chance 0.5); property AUC of body.conv1 0.5 (chance 0.5)")
    assert not check["passed"]


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
