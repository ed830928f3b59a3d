"""A property is judged by the whole message, unless a single layer surely tells more."""

import pytest
from scipy.stats import norm

from leaktight.attacks import PropertyInference
from leaktight.core.metric import Reading
from leaktight.findings.auc import is_inverted, weight
from leaktight.findings.kind import first_kind
from leaktight.findings.layer_measure import question_of
from leaktight.findings.property import Property, beats_chance_among, strongest_property, tells_property, whence
from leaktight.findings.rows import rows_of
from leaktight.probes import Sensitivity


def auc(value, spread=0.05, layer=None, name="property_auc"):
    ends = {"low": value - spread, "high": min(1.0, value + spread)}
    return Reading(name=name, value=value, n=40, chance=0.5, leaks="high", against="raw", layer=layer, **ends)


def test_only_a_property_auc_speaks_of_a_property():
    assert tells_property(auc(0.7))
    assert not tells_property(auc(0.7, name="leak_auc"))
    assert not tells_property(None)


def test_the_best_of_many_layers_is_not_what_an_attacker_gets():
    whole = auc(0.8, 0.1)
    assert strongest_property([whole, auc(0.85, 0.1, "conv1"), auc(0.88, 0.1, "head")]) is whole
    assert strongest_property([auc(0.95, 0.02, "head"), whole]).layer == "head"


def test_a_layer_that_tells_where_all_together_do_not_comes_forward():
    whole = auc(0.55, 0.1)
    assert strongest_property([whole, auc(0.62, 0.15, "conv1"), auc(0.64, 0.05, "head")]).layer == "head"
    assert strongest_property([whole, auc(0.45, 0.04, "conv1"), auc(0.6, 0.2, "head")]) is whole


def test_luck_among_many_layers_is_not_a_leak():
    lucky = [auc(0.61, 0.1, f"conv{number}") for number in range(11)]
    assert lucky[0].beats_chance()
    assert strongest_property([auc(0.5, 0.1), *lucky]).layer is None
    assert strongest_property([auc(0.5, 0.1), lucky[0]]).layer == "conv0"


@pytest.mark.parametrize("tried", [1, 5, 20])
def test_the_wider_interval_is_bonferronis(tried):
    edge = 0.5 + 0.1 * norm.ppf(1 - 0.05 / (2 * tried)) / norm.ppf(0.975)
    assert beats_chance_among(auc(edge + 1e-6, 0.1), tried)
    assert not beats_chance_among(auc(edge - 1e-6, 0.1), tried)


def test_without_all_together_the_layer_that_tells_most_counts():
    assert strongest_property(
        [auc(0.9, 0.45, "conv1"), auc(0.8, layer="conv2 + head"), auc(0.7, layer="head")]
    ).layer == ("conv2 + head")
    assert strongest_property([auc(0.9, name="leak_auc")]) is None


def test_below_a_half_is_told_the_other_way_round():
    assert is_inverted(auc(0.1))
    assert not is_inverted(auc(0.48))
    assert weight(auc(0.1)) == pytest.approx(weight(auc(0.9)))


def test_layers_are_named():
    found = [whence(auc(0.9, layer=layer)) for layer in (None, "head", "conv1 + head")]
    assert found == ["the whole message", "the layer head alone", "the layers conv1 + head"]


def test_a_row_is_judged_by_its_property(made):
    readings = (auc(0.8, 0.1), auc(0.85, 0.1, "head"))
    (row,) = rows_of([made.record(psnr=None, attack=PropertyInference(), label="property", extra=readings)])
    reading = Property().leading_reading(row)
    assert (reading.layer, reading.value, question_of(row.measured_in)) == (None, 0.8, "have the private property")
    assert Property().severity(row)[0] == pytest.approx(0.6)
    (images,) = rows_of([made.record(psnr=30, extra=readings)])
    assert first_kind(images).reading(images).name == "reconstruction_statement"
    assert Property().leading_reading(images) is None


def test_what_needs_no_attack_is_not_judged(made):
    reading = Reading(name="sensitivity_f", value=2.0, leaks="high", layer="head")
    (row,) = rows_of([made.record(psnr=None, probe=Sensitivity(), label="sensitivity", extra=(reading,))])
    assert first_kind(row) is None
