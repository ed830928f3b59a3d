"""Histograms of gradient norms: shares by class, over seeds, on one scale for all defences, and never in a redacted report."""

import pytest

from leaktight.core.metric import Reading
from leaktight.defences import MaxNorm, TopK
from leaktight.findings.redaction import redact_records
from leaktight.findings.rows import rows_of
from leaktight.metrics.norm_histogram import BINS
from leaktight.report.norms import MOST_FIGURES, chart_of, norms_section, shares_of
from leaktight.report.page import Page


def counts(places):
    found = [0.0] * BINS
    for place, count in places.items():
        found[place] = float(count)
    return tuple(found)


def readings(negative, positive, value=0.9):
    return (
        Reading(name="leak_auc", value=value, low=value - 0.01, high=value + 0.01, n=9, chance=0.5, leaks="high"),
        Reading(name="norm_negative", value=0.5, n=int(sum(negative.values())), against="raw", each=counts(negative)),
        Reading(name="norm_positive", value=3.0, n=int(sum(positive.values())), against="raw", each=counts(positive)),
    )


@pytest.fixture
def records(made):
    apart, mixed = readings({40: 30, 41: 10}, {70: 5}), readings({60: 40}, {60: 4, 62: 1})
    return [
        made.record(psnr=None, label=label, extra=extra, defence=defence)
        for label in ("norm", "direction")
        for defence, extra in ((None, apart), (MaxNorm(), mixed))
    ]


@pytest.fixture
def page(made):
    def make(records, redact=False):
        shown = redact_records(records) if redact else records
        return Page.of(shown, made.plan(), made.VERSIONS, lambda key: None, redact)

    return make


def test_one_figure_for_each_defence_whatever_the_attacks(page, records):
    section = norms_section(page(records))
    assert [figure.caption for figure in section.values["figures"]] == ["No defence", "Max-norm"]
    assert section.values["left"] == 0


def test_shares_add_up_to_one_and_bins_are_joined_in_pairs(records):
    shares = shares_of(rows_of(records)[0])
    assert {name: sum(heights) for name, heights in shares.items()} == pytest.approx(
        {"norm_negative": 1, "norm_positive": 1}
    )
    assert len(shares["norm_negative"]) == BINS // 2
    assert (shares["norm_negative"][20], shares["norm_positive"][35]) == (1.0, 1.0)


def test_seeds_are_added_up(made):
    one = made.record(psnr=None, extra=readings({40: 30}, {70: 5}))
    other = made.record(psnr=None, seed=1, extra=readings({60: 10}, {70: 5}))
    (row,) = rows_of([one, other])
    shares = shares_of(row)["norm_negative"]
    assert (shares[20], shares[30]) == pytest.approx((0.75, 0.25))


def test_all_figures_have_one_scale_and_both_classes(page, records):
    first, second = (figure.chart for figure in norms_section(page(records)).values["figures"])
    assert [one.name for one in first.panels[0].series] == ["negatives", "positives"]
    assert [one.colour for one in first.panels[0].series] == ["negative", "positive"]
    assert (first.x, first.panels[0].y) == (second.x, second.panels[0].y)
    assert first.x.log
    points = first.panels[0].series[0].points
    # Bins 38 to 72 of 0.05 decades above a thousandth.
    assert points[0].x == pytest.approx(10 ** (-3 + 0.05 * 38))
    assert max(point.y for point in points) == pytest.approx(100)
    assert first.panels[0].y.high >= 100


def test_a_redacted_report_has_none(page, records):
    assert norms_section(page(records, redact=True)) is None


def test_an_audit_of_images_has_none(page, made):
    assert norms_section(page(made.audit())) is None


def test_many_defences_are_cut_off_and_said(page, made):
    shares = [0.01 * (number + 1) for number in range(MOST_FIGURES + 2)]
    records = [made.record(TopK(share=share), psnr=None, extra=readings({40: 1}, {70: 1})) for share in shares]
    section = norms_section(page(records))
    assert (len(section.values["figures"]), section.values["left"]) == (MOST_FIGURES, 2)


def test_a_figure_without_one_class_is_drawn_all_the_same():
    chart = chart_of({"norm_negative": [0.0] * 10 + [1.0] + [0.0] * 39}, (8, 14), 1.0, "no defence")
    [negatives] = chart.panels[0].series
    assert (negatives.name, len(negatives.points)) == ("negatives", 12)
