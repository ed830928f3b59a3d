import pytest

from leaktight.core.defence import Chain
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.characteristic import Spot, curves_of, leading_curves, ratio_of
from leaktight.findings.kind import distances
from leaktight.findings.rows import rows_of
from leaktight.findings.summary import summarise
from leaktight.metrics.tradeoff import Point, cap, cap_interval


def curves(records):
    return summarise(records).curves


def test_a_curve_for_each_kind_that_was_measured_at_several_strengths(made):
    noise, top_k = curves(made.sweep())
    assert (noise.family, noise.field, noise.attack, noise.batch_size, noise.stage) == (
        "Gaussian noise",
        "std",
        "dlg2019",
        1,
        "initial",
    )
    assert [spot.strength for spot in top_k.spots] == [0.3, 0.1, 0.01]
    assert [spot.region for spot in noise.spots] == ["red", "white", "green"]
    assert [spot.ratio.value for spot in noise.spots] == [50, 5, 0.5]


def test_cap_is_equation_1_over_the_strengths_without_the_undefended_row(made):
    noise, top_k = curves(made.sweep())
    assert noise.caps["reconstruction"].value == pytest.approx((0.8 * 0.1 + 0.7 * 0.6 + 0.4 * 1.0) / 3)
    assert top_k.caps["membership"].value == pytest.approx((0.7 + 0.6 + 0.3) * 0.25 / 3)
    assert top_k.caps["tracing"].value == pytest.approx((0.7 + 0.6 + 0.3) * 0.5 / 3)
    assert noise.base.utility.value == pytest.approx(0.82)
    for aim, found in noise.caps.items():
        points = [Point(spot.row.utility, spot.distance(aim)) for spot in noise.spots]
        assert (found.value, found.low, found.high, found.n) == (cap(points), *cap_interval(points), 3)


def test_a_distance_that_was_not_measured_everywhere_has_no_cap(made):
    assert set(curves(made.sweep(labels=None, untraced=None))[0].caps) == {"reconstruction"}
    records = made.sweep(untraced=None)
    records[1] = made.record(
        GaussianNoise(std=1e-4), accuracy=0.8, extra=made.characteristic(50.0, 0.1, 0.5), labels=None
    )
    noise, top_k = curves(records)
    assert set(noise.caps) == {"reconstruction"}
    assert set(top_k.caps) == {"reconstruction", "membership"}


def test_records_that_lack_the_new_readings_have_curves_without_ratio(made):
    old = [
        made.record(d, accuracy=0.8, extra=made.characteristic(None, 0.5))
        for d in (GaussianNoise(std=0.1), GaussianNoise(std=1))
    ]
    (curve,) = curves(old)
    assert [spot.ratio for spot in curve.spots] == [spot.region for spot in curve.spots] == [None, None]
    assert curve.base is None
    assert curve.caps["reconstruction"].value == pytest.approx(0.4)


def test_without_utility_or_distance_there_is_no_point(made):
    assert curves(made.audit()[:1]) == ()
    assert curves([made.record(GaussianNoise(std=s), psnr=None) for s in (0.1, 1)]) == ()
    assert curves([made.record(GaussianNoise(std=s), accuracy=None, labels=0.5) for s in (0.1, 1)]) == ()
    failed = made.record(GaussianNoise(std=1), status=Status.FAILED, reason="no")
    assert curves([made.record(GaussianNoise(std=0.1), labels=0.5), failed]) == ()


def test_attacks_settings_and_scenarios_are_kept_apart(made):
    other = made.SCENARIO.model_copy(update={"rounds": 5})
    records = (
        made.sweep()
        + made.sweep(label="other")
        + made.sweep(batch_size=4)
        + made.sweep(stage="end")
        + made.sweep(scenario=other)
    )
    found = curves(records)
    assert len(found) == 10
    assert len({(c.scenario, c.attack, c.batch_size, c.stage, c.family) for c in found}) == 10


def test_chains_are_swept_too(made):
    chains = [Chain(links=(TopK(share=0.05), GaussianNoise(std=std))) for std in (0.1, 0.01)]
    (curve,) = curves([made.record(chain, labels=0.5) for chain in chains])
    assert curve.family == "top-k (share 0.05) + Gaussian noise"
    assert curve.caps["membership"].value == pytest.approx(0.4)


def test_seeds_are_pooled_and_ratios_by_their_logarithm(made):
    (one, *_), (two, *_) = (made.sweep(seed=seed)[1:2] for seed in (0, 1))
    two = two.model_copy(
        update={
            "readings": tuple(
                r if r.name != "gradient_ratio" else r.model_copy(update={"value": 0.5, "low": 0.4, "high": 0.625})
                for r in two.readings
            )
        }
    )
    (row,) = rows_of([one, two])
    ratio = row.reading("gradient_ratio")
    assert ratio.value == pytest.approx(5.0)
    assert 0 < ratio.low < 5 < ratio.high
    assert row.messages == 16


def test_the_leading_curve_is_where_most_leaks_under_the_strongest_attack(made):
    weak = [r.model_copy(update={"readings": tuple(map(farther, r.readings))}) for r in made.sweep(label="weak")]
    records = weak + made.sweep() + made.sweep(batch_size=4)
    summary = summarise(records)
    assert len(summary.curves) == 6
    chosen = leading_curves(summary.curves, summary.judgements)
    assert [(c.family, c.attack, c.batch_size) for c in chosen] == [
        ("Gaussian noise", "dlg2019", 1),
        ("top-k", "dlg2019", 1),
    ]
    assert [c.batch_size for c in leading_curves(curves_of(rows_of(made.sweep(batch_size=4))), summary.judgements)] == [
        4,
        4,
    ]
    assert leading_curves((), ()) == ()


def farther(reading):
    return (
        reading.model_copy(update={"value": 2 * reading.value})
        if reading.name == distances()["reconstruction"]
        else reading
    )


def test_a_distance_is_taken_against_the_raw_examples(made):
    row = rows_of([made.record(labels=0.25, extra=made.characteristic(3.0, 0.5))])[0]
    assert Spot(1.0, row).distance("reconstruction").against == "raw"
    assert Spot(1.0, row).distance("tracing") is None


def test_the_paper_s_ratio_goes_before_those_over_more_tensors(made):
    ratios = [
        Reading(name=name, value=value)
        for name, value in (("gradient_ratio", 1.5), ("bias_ratio", 0.5), ("body_ratio", 1.0))
    ]
    assert ratio_of(ratios).name == "bias_ratio"
    assert ratio_of([ratios[0], ratios[2]]).name == "body_ratio"
    assert ratio_of(ratios[:1]).name == "gradient_ratio"
    assert ratio_of([]) is None
    assert ratio_of([Reading(name="bias_ratio", value=0.5, layer="body.0")]) is None
