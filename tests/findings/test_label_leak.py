"""Leak AUCs are compared by what they tell beyond their own chance level, at the layer that tells most."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.metric import Reading
from leaktight.findings.auc import excess, is_inverted, weight
from leaktight.findings.kind import first_kind
from leaktight.findings.label_leak import place_of, strongest_layer, tail_of, tells_labels
from leaktight.findings.labels import Labels
from leaktight.findings.rows import rows_of


def auc(value, chance=0.5, spread=0.02, layer=None, name="leak_auc"):
    return Reading(
        name=name, value=value, low=value - spread, high=value + spread, n=40, chance=chance, leaks="high", layer=layer
    )


def test_only_the_median_over_steps_speaks_for_labels():
    assert tells_labels(auc(0.7))
    assert not tells_labels(auc(0.7, name="leak_auc_q95"))
    assert not tells_labels(None)


def test_certainty_is_one_and_chance_is_zero_whatever_the_chance_level():
    assert [excess(auc(1.0, chance)) for chance in (0.5, 0.56, None)] == [1, 1, 1]
    assert [excess(auc(chance, chance)) for chance in (0.5, 0.56)] == [0, 0]
    assert excess(auc(0.45)) == pytest.approx(-0.1)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.5, 1))
def test_a_larger_auc_never_weighs_less_at_one_chance_level(one, other, chance):
    less, more = sorted((one, other))
    assert excess(auc(less, chance)) <= excess(auc(more, chance))


def test_an_attack_that_beats_chance_weighs_more_than_one_that_does_not():
    surely, perhaps = auc(0.56, spread=0.01), auc(0.7, chance=0.56, spread=0.2)
    assert excess(perhaps) > excess(surely)
    assert weight(surely) > weight(perhaps)


def test_the_layer_that_tells_most_beyond_its_own_chance_counts():
    readings = [
        auc(0.6),
        auc(0.62, chance=0.6, layer="linear1"),
        auc(0.61, layer="relu1"),
        auc(0.99, name="leak_auc_q95"),
    ]
    assert strongest_layer(readings).layer == "relu1"
    assert strongest_layer([auc(0.9), auc(0.9, layer="relu1")]).layer is None
    assert strongest_layer([auc(0.9, name="psnr")]) is None


def test_worst_steps_weigh_less_than_the_median_and_more_than_nothing():
    median, nothing, tail = auc(0.53), auc(0.51), auc(0.8, chance=0.6, name="leak_auc_q95")
    lucky = auc(0.61, chance=0.6, name="leak_auc_q95")
    assert weight(median) > weight(nothing, tail) > weight(auc(0.515), lucky) > weight(nothing)
    assert weight(nothing, lucky) == weight(nothing)


def test_a_layer_that_tells_labels_in_the_worst_steps_alone_comes_forward():
    tails = [auc(0.6, 0.6, name="leak_auc_q95"), auc(0.8, 0.6, layer="relu1", name="leak_auc_q95")]
    readings = [auc(0.515), auc(0.51, layer="relu1"), *tails]
    assert strongest_layer(readings).layer == "relu1"
    assert tail_of(readings, "relu1") == tails[1]
    assert tail_of(readings, "relu9") is None


@pytest.mark.parametrize(("value", "wanted"), [(0.1, True), (0.47, True), (0.49, False), (0.9, False)])
def test_an_auc_surely_below_a_half_is_turned(value, wanted):
    assert is_inverted(auc(value)) is wanted


def test_a_small_share_of_labels_missed_is_no_auc_the_other_way_round(made):
    missed = Reading(name="label_distance", value=0.1, low=0.05, high=0.2, n=8, leaks="low", against="raw")
    (row,) = rows_of([made.record(psnr=None, extra=(missed,))])
    assert not Labels().is_read(row)


def test_either_way_round_weighs_the_same():
    assert weight(auc(0.1)) == pytest.approx(weight(auc(0.9)))
    assert weight(auc(0.4)) > weight(auc(0.51))


@pytest.mark.parametrize(
    ("features", "chance"),
    [({"value": 0.7}, 0.7), ({"value": 0.7, "layer": "relu1"}, 0.5), ({"value": 0.53, "low": 0.48, "high": 0.58}, 0.5)],
)
def test_what_features_tell_at_the_same_layer_beyond_luck_is_the_level_to_beat(features, chance):
    added = auc(0.9, name="leak_auc_passes")
    assert strongest_layer([auc(0.6), added, Reading(name="leak_auc_features", **features)]).chance == chance


def test_scores_added_up_come_before_those_of_single_messages():
    assert strongest_layer([auc(0.95), auc(0.6, name="leak_auc_passes")]).name == "leak_auc_passes"


def test_a_layer_is_named():
    assert (place_of(auc(1.0)), place_of(auc(1.0, layer="relu2"))) == ("at the cut", "at the layer relu2")


def test_a_row_is_judged_by_its_strongest_layer_and_ranked_by_it(made):
    weak = made.record(psnr=None, label="norm", extra=(auc(0.6), auc(0.8, layer="linear1")))
    strong = made.record(psnr=None, label="clustering", extra=(auc(0.82, chance=0.7),))
    rows = {row.attack: row for row in rows_of([weak, strong])}
    assert first_kind(rows["norm"]) == Labels()
    assert Labels().leading_reading(rows["norm"]).layer == "linear1"
    assert Labels().severity(rows["norm"]) > Labels().severity(rows["clustering"])


def test_a_row_has_the_worst_steps_of_its_strongest_layer(made):
    tails = [auc(0.7, name="leak_auc_q95"), auc(0.9, layer="linear1", name="leak_auc_q95")]
    (row,) = rows_of([made.record(psnr=None, label="norm", extra=(auc(0.6), auc(0.8, layer="linear1"), *tails))])
    assert Labels()._tail(row).value == 0.9
    (images,) = rows_of([made.record(psnr=30, extra=(auc(0.99), *tails))])
    assert Labels()._tail(images) is None


def test_images_come_before_labels(made):
    (row,) = rows_of([made.record(psnr=30, extra=(auc(0.99),))])
    assert first_kind(row).reading(row).name == "reconstruction_statement"


def test_a_row_knows_who_attacks_from_where(made):
    (row,) = rows_of([made.record()])
    assert (row.kind, row.seat) == (made.DLG.kind, "server")
