"""Layers in the order of the network, ranked by each risk, and whether cheap measures point at the same ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from leaktight.attacks import PropertyInference
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.data import ClassProperty, Parity
from leaktight.defences import GaussianNoise
from leaktight.findings.kind import layer_measures
from leaktight.findings.layer_risk import (
    LayerRow,
    correlations,
    layer_rows,
    of_layers_alone,
    profiles_of,
    rankings,
    riskiest,
    sealings,
)
from leaktight.findings.rows import rows_of
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.probes import MutualInformation, Sensitivity, Utility

LAYERS = ("body.conv1", "body.conv2", "body.linear1", "head")
SCENARIO = Federated(data=Parity(), model=MLP())
CLASSES = Federated(data=ClassProperty(data=Parity()), model=MLP())


def reading(name, value, layer=None, spread=0.05, chance=None):
    ends = {"low": value - spread, "high": value + spread}
    return Reading(name=name, value=value, n=40, leaks="high", layer=layer, chance=chance, **ends)


def layered(name, values, layers=LAYERS, chance=None):
    return tuple(reading(name, value, layer, chance=chance) for layer, value in zip(layers, values, strict=True))


@pytest.fixture
def attacked(made):
    def make(values, whole=0.8, defence=None, label="property", **more):
        found = (reading("property_auc", whole, chance=0.5), *layered("property_auc", values, chance=0.5))
        settings = {"scenario": SCENARIO, "stage": "training", "batch_size": 16, **more}
        return made.record(
            defence, psnr=None, attack=PropertyInference(layers="each"), label=label, extra=found, **settings
        )

    return make


@pytest.fixture
def probed(made):
    def make(probe, name, values, defence=None, **more):
        settings = {"scenario": SCENARIO, "stage": "training", "batch_size": 16, "label": probe.kind, **more}
        return made.record(defence, psnr=None, probe=probe, extra=layered(name, values), **settings)

    return make


@pytest.fixture
def inverted(made):
    def make(layer, psnr, **more):
        attack = made.GEIPING.model_copy(update={"layers": (layer,) if layer else ()})
        return made.record(psnr=psnr, attack=attack, label=layer or "all", scenario=SCENARIO, **more)

    return make


def row(layer, **values):
    return LayerRow(layer, {name: reading(name, value, layer) for name, value in values.items()})


def test_a_row_for_each_layer_holds_what_each_probe_said(attacked, probed, inverted):
    records = [
        inverted("head", 9.0),
        inverted("body.conv1", 24.0),
        inverted("", 30.0),
        attacked((0.6, 0.7, 0.9, 0.8)),
        probed(Sensitivity(), "sensitivity_f", (4.0, 3.0, 2.0, 1.0)),
        probed(MutualInformation(), "mutual_information_upper_share", (1.0, 0.9, 0.8, 0.3)),
    ]
    rows = layer_rows(records)
    assert [one.layer for one in rows] == list(LAYERS)
    assert [one.value("property_auc") for one in rows] == [0.6, 0.7, 0.9, 0.8]
    assert [one.value("sensitivity_f") for one in rows] == [4.0, 3.0, 2.0, 1.0]
    assert [one.value("mutual_information_upper_share") for one in rows] == [1.0, 0.9, 0.8, 0.3]
    assert [one.value("psnr") for one in rows] == [24.0, None, None, 9.0]


def test_without_an_order_in_one_record_that_of_the_records_counts(inverted):
    assert [one.layer for one in layer_rows([inverted("head", 9.0), inverted("body.conv1", 24.0)])] == [
        "head",
        "body.conv1",
    ]


def test_seeds_are_pooled(attacked):
    rows = layer_rows([attacked((0.6, 0.7, 0.9, 0.8), seed=0), attacked((0.8, 0.7, 0.9, 0.8), seed=1)])
    assert rows[0].value("property_auc") == pytest.approx(0.7)
    assert rows[0].readings["property_auc"].n == 80


def test_of_several_attacks_the_one_that_tells_most_anywhere_is_shown_whole(attacked):
    rows = layer_rows([attacked((0.6, 0.7, 0.9, 0.8), label="strong"), attacked((0.7, 0.7, 0.7, 0.7), label="weak")])
    assert [one.value("property_auc") for one in rows] == [0.6, 0.7, 0.9, 0.8]


def test_a_gap_is_filled_by_another_attack(attacked, made):
    part = made.record(
        psnr=None,
        attack=PropertyInference(layers=("body.conv1",)),
        label="one",
        scenario=SCENARIO,
        extra=layered("property_auc", (0.95,), ("body.conv1",)),
    )
    others = attacked((0.6, 0.7, 0.9, 0.8))
    rows = layer_rows([others, part])
    assert [one.value("property_auc") for one in rows] == [0.95, 0.7, 0.9, 0.8]


def test_layers_that_were_taken_together_are_no_layer(made):
    joined = layered("property_auc", (0.9,), ("body.conv1 + head",))
    assert layer_rows([made.record(psnr=None, attack=PropertyInference(), label="two", extra=joined)]) == []


def test_only_measured_cells_and_this_family_count(attacked, made):
    assert layer_rows([attacked((0.6, 0.7, 0.9, 0.8), purpose="null")]) == []
    failed = attacked((0.6, 0.7, 0.9, 0.8)).model_copy(update={"status": Status.FAILED, "readings": ()})
    assert layer_rows([failed]) == []
    assert layer_rows([made.record(psnr=None, extra=layered("leak_auc", (0.9,) * 4))]) == []


def test_a_class_in_the_place_of_the_property_is_about_labels(attacked, probed):
    records = [
        attacked((0.6, 0.7, 0.9, 0.8)),
        attacked((0.5, 0.6, 0.7, 0.99), scenario=CLASSES),
        probed(Sensitivity(), "sensitivity_f", (4.0, 3.0, 2.0, 1.0), scenario=CLASSES),
    ]
    rows = layer_rows(records)
    assert [one.value("label_auc") for one in rows] == [0.5, 0.6, 0.7, 0.99]
    assert [one.value("property_auc") for one in rows] == [0.6, 0.7, 0.9, 0.8]
    assert [one.value("sensitivity_f") for one in rows] == [4.0, 3.0, 2.0, 1.0]
    assert rankings(rows)["labels"][0] == "head"
    assert rankings(rows)["property"][0] == "body.linear1"


def test_rankings_are_by_the_attack_then_by_what_needs_none():
    rows = [
        row("a", property_auc=0.7, v_information=0.1),
        row("b", property_auc=0.7, v_information=0.3),
        row("c", v_information=0.6),
        row("d", sensitivity_f=9.0),
        row("e", property_auc=0.9, psnr=12.0),
        row("f", psnr=30.0),
    ]
    assert rankings(rows) == {"property": ["e", "b", "a", "c"], "reconstruction": ["f", "e"]}


def test_sensitivity_ranks_nothing():
    assert rankings([row("a", sensitivity_f=1.0), row("b", sensitivity_f=2.0)]) == {}
    assert rankings([row("b", label_auc=0.6, sensitivity_f=1.0), row("a", label_auc=0.6, sensitivity_f=2.0)]) == {
        "labels": ["b", "a"]
    }
    assert rankings([]) == {}


def test_what_remains_ranks_before_what_a_layer_tells_alone():
    rows = [
        row("a", property_auc=0.9, remaining_auc=0.6, sealed_layers=2, sealed_bytes=30),
        row("b", property_auc=0.7, remaining_auc=0.8, sealed_layers=1, sealed_bytes=10),
    ]
    assert rankings(rows) == {"property": ["b", "a"]}
    [measure] = [measure for measure in layer_measures() if measure.of_property]
    steps = sealings(rows, measure)
    assert [(step.layer, step.count, step.bytes, step.remaining.value) for step in steps] == [
        ("b", 1, 10, 0.8),
        ("a", 2, 30, 0.6),
    ]


def test_runs_that_rank_layers_differently_have_no_order_in_common():
    rows = [
        row("a", property_auc=0.7, remaining_auc=0.6, sealed_layers=1.5, sealed_bytes=30),
        row("b", property_auc=0.9, remaining_auc=0.8, sealed_layers=1.5, sealed_bytes=10),
    ]
    assert rankings(rows) == {"property": ["b", "a"]}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_every_layer_is_ranked_once_and_the_first_tells_most(values):
    rows = [row(f"layer{number}", property_auc=value) for number, value in enumerate(values)]
    ranked = rankings(rows)["property"]
    assert sorted(ranked) == sorted(one.layer for one in rows)
    assert next(one for one in rows if one.layer == ranked[0]).value("property_auc") == max(values)


def test_the_correlation_is_pearsons_with_students_p():
    told, known = np.array([0.6, 0.65, 0.9, 0.8, 0.7]), np.array([0.1, 0.2, 0.5, 0.6, 0.15])
    rows = [row(f"l{n}", property_auc=a, v_information=v) for n, (a, v) in enumerate(zip(told, known, strict=True))]
    (found,) = correlations(rows)
    r = np.corrcoef(told, known)[0, 1]
    p = 2 * student.sf(abs(r) * np.sqrt(3 / (1 - r**2)), df=3)
    assert (found.metric, found.attack, found.n) == ("v_information", "property_auc", 5)
    assert (found.r, found.p) == (pytest.approx(r), pytest.approx(p))


def test_too_few_layers_or_a_flat_line_have_no_correlation():
    three = [row(f"l{n}", property_auc=0.6 + n / 10, sensitivity_f=n) for n in range(3)]
    flat = [row(f"l{n}", property_auc=0.6 + n / 10, sensitivity_f=1.0) for n in range(5)]
    assert [(one.r, one.p, one.n) for one in correlations(three) + correlations(flat)] == [
        (None, None, 3),
        (None, None, 5),
    ]


def test_only_layers_that_have_both_are_correlated():
    rows = [row(f"l{n}", property_auc=0.6 + n / 10, sensitivity_f=n**2) for n in range(4)]
    rows += [row("l4", property_auc=0.5), row("l5", sensitivity_f=1.0)]
    (found,) = correlations(rows)
    assert (found.n, found.r > 0.9) == (4, True)


def test_labels_have_correlations_of_their_own():
    rows = [
        row(f"l{n}", label_auc=0.6 + n / 10, label_v_information=n, v_information=n, sensitivity_f=-n) for n in range(4)
    ]
    assert [(one.metric, one.attack) for one in correlations(rows)] == [
        ("label_v_information", "label_auc"),
        ("sensitivity_f", "label_auc"),
    ]


def test_layers_whose_intervals_overlap_the_top_are_named_together():
    rows = [row("a", property_auc=0.7), row("b", property_auc=0.9), row("c", property_auc=0.82)]
    assert [one.layer for one in riskiest(rows, "property_auc")] == ["b", "c"]
    assert riskiest(rows, "psnr") == []


def test_a_layer_at_chance_is_not_named_beside_one_that_tells():
    wide = LayerRow("a", {"property_auc": reading("property_auc", 0.6, "a", spread=0.3, chance=0.5)})
    sure = LayerRow("b", {"property_auc": reading("property_auc", 0.8, "b", spread=0.1, chance=0.5)})
    assert [one.layer for one in riskiest([wide, sure], "property_auc")] == ["b"]


def test_a_profile_for_each_scenario_setting_and_defence(attacked, probed):
    noise = GaussianNoise(std=0.1)
    records = [
        attacked((0.5, 0.5, 0.6, 0.6), whole=0.6, defence=noise),
        probed(Sensitivity(), "sensitivity_f", (4.0, 3.0, 2.0, 1.0)),
        attacked((0.6, 0.7, 0.9, 0.8), whole=0.85),
        attacked((0.6, 0.7, 0.9, 0.8), whole=0.7, batch_size=32),
    ]
    found = profiles_of(records, rows_of(records))
    assert [(p.place.defence.kind, p.place.batch_size, p.together["property_auc"].value) for p in found] == [
        ("none", 16, 0.85),
        ("none", 32, 0.7),
        ("gaussian_noise", 16, 0.6),
    ]
    assert [len(p.layers[0].readings) for p in found] == [2, 1, 1]


def test_one_layer_that_was_inverted_is_no_profile_and_the_only_layer_is(inverted, made):
    records = [inverted("head", 9.0)]
    assert profiles_of(records, rows_of(records)) == []
    records = [made.record(psnr=None, probe=Sensitivity(), extra=layered("sensitivity_f", (1.0,), ("head",)))]
    assert [len(profile.layers) for profile in profiles_of(records, rows_of(records))] == [1]


def test_all_layers_together_have_names_as_layers_have(attacked):
    records = [attacked((0.6, 0.7, 0.9, 0.8), scenario=CLASSES)]
    (found,) = profiles_of(records, rows_of(records))
    assert (found.together.keys(), found.together["label_auc"].value) == ({"label_auc"}, 0.8)


def test_rows_of_layers_alone_are_known(attacked, probed, made):
    (single,) = rows_of([probed(Sensitivity(), "sensitivity_f", (4.0, 3.0, 2.0, 1.0))])
    (whole,) = rows_of([attacked((0.6, 0.7, 0.9, 0.8))])
    (refused,) = rows_of([made.record(status=Status.REFUSED, reason="No.", probe=Sensitivity())])
    (useful,) = rows_of([made.record(psnr=None, probe=Utility(), label="utility")])
    assert [of_layers_alone(one) for one in (single, whole, refused, useful)] == [True, False, False, False]
