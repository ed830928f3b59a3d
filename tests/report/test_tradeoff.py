"""The trade-off: a line for each kind of defence, named at its end, each point beside its own chance level."""

import pytest

from leaktight.core.metric import Reading
from leaktight.defences import GaussianNoise, LayerGuard, TopK
from leaktight.findings.images import recognised_share
from leaktight.findings.summary import summarise
from leaktight.report.page import Page
from leaktight.report.palette import Palette
from leaktight.report.tradeoff import over_strength, swept, tradeoff, tradeoff_section


def judgements(records):
    return summarise(records).judgements


def draw(records):
    return tradeoff(judgements(records), Palette.of(record.cell.defence for record in records))


def section(made, records):
    return tradeoff_section(Page.of(records, made.plan(), {}, lambda key: None, redact=False))


def names(section):
    return [figure.name for figure in section.values["figures"]]


@pytest.fixture
def records(made):
    strengths = ((0.3, 27, 0.8), (0.05, 19, 0.75), (0.01, 9, 0.6))
    return [made.record(psnr=38, accuracy=0.82)] + [
        made.record(TopK(share=s), psnr=p, accuracy=a) for s, p, a in strengths
    ]


def test_each_kind_is_a_line_from_weak_to_strong_and_no_defence_is_a_star(records):
    chart = draw(records)
    line, star = chart.panels[0].series
    assert (line.name, star.name) == ("top-k", "no defence")
    assert [point.x for point in line.points] == pytest.approx([80, 75, 60])
    assert [point.y for point in line.points] == pytest.approx([100, 37.5, 0])
    assert [point.label for point in line.points] == ["0.3", "", "top-k share 0.01"]
    assert (star.symbol, star.colour, line.colour) == ("star", "bare", "colour0")
    assert chart.panels[0].level == 0


def test_bars_are_the_intervals(records):
    line = draw(records).panels[0].series[0]
    rows = [j.worst for j in judgements(records) if j.defence.kind == "top_k"]
    for point, row in zip(line.points, rows, strict=True):
        assert (point.left, point.right) == pytest.approx((100 * row.utility.low, 100 * row.utility.high))
        assert (point.low, point.high) == pytest.approx(
            (100 * recognised_share(row).low, 100 * recognised_share(row).high)
        )


def test_leakage_over_strength_starts_at_no_defence_and_shows_chance(made, records):
    found = section(made, records)
    assert names(found) == ["plot-tradeoff-1-images", "plot-strength-1-images-0"]
    chart = found.values["figures"][1].chart
    assert [text for _, text in chart.x.ticks] == ["none", "0.3", "0.05", "0.01"]
    assert [point.y for point in chart.panels[0].series[0].points] == pytest.approx([38, 27, 19, 9])
    assert chart.panels[0].level == made.GREY


def test_grey_dashes_are_explained_where_there_are_any(made, records, report):
    assert section(made, records).values["chance"]
    without = [
        made.record(defence, psnr=None, accuracy=accuracy, extra=(Reading(name="leak_auc", value=0.9, leaks="high"),))
        for defence, accuracy in ((None, 0.82), (TopK(), 0.8))
    ]
    assert not section(made, without).values["chance"]
    assert "Grey dashes" in report(records, gallery=lambda key: None)
    assert "Grey dashes" not in report(without, gallery=lambda key: None)


def test_each_point_has_the_chance_level_of_its_own_row(made):
    def auc(value, chance):
        return (Reading(name="leak_auc", value=value, low=value, high=value, chance=chance, leaks="high"),)

    strengths = ((0.3, 0.8, 0.56), (0.1, 0.7, 0.5))
    records = [made.record(psnr=None, extra=auc(0.9, 0.6))]
    records += [made.record(TopK(share=s), psnr=None, extra=auc(v, c)) for s, v, c in strengths]
    chart = draw(records)
    assert chart.panels[0].level is None
    assert [point.chance for point in chart.panels[0].series[0].points] == [0.56, 0.5]
    [line] = swept(judgements(records)[0].kind, judgements(records))
    over = over_strength(judgements(records)[0].kind, line, Palette.of([TopK()]))
    assert [point.chance for point in over.panels[0].series[0].points] == [0.6, 0.56, 0.5]


def test_one_strength_makes_no_line_over_strength(made):
    assert names(section(made, [made.record(psnr=38), made.record(TopK(), psnr=9)])) == ["plot-tradeoff-1-images"]


def test_without_accuracy_the_trade_off_is_left_out(made):
    noises = [made.record(GaussianNoise(std=std), psnr=9, accuracy=None) for std in (0.1, 1.0)]
    records = [made.record(accuracy=None), *noises]
    assert draw(records) is None
    assert names(section(made, records)) == ["plot-strength-1-images-0"]
    assert section(made, [made.control()]) is None


def test_each_scenario_has_charts_of_its_own(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    records = [made.record(d, scenario=s) for s in (made.SCENARIO, other) for d in (None, TopK())]
    found = section(made, records)
    assert names(found) == ["plot-tradeoff-1-images", "plot-tradeoff-2-images"]
    assert found.values["figures"][1].caption == "Accuracy against leakage, scenario 2"


def test_a_number_that_is_swept_inside_a_defence_makes_one_line_too(made):
    guards = [LayerGuard(layers=("head",), guard=GaussianNoise(std=std)) for std in (0.01, 0.1)]
    records = [made.record(psnr=38, accuracy=0.82)] + [made.record(guard, psnr=20, accuracy=0.7) for guard in guards]
    line, _ = draw(records).panels[0].series
    assert line.name == "layer guard (guard Gaussian noise, count 1, layers head)"
    assert [point.label for point in line.points] == ["0.01", f"{line.name} std 0.1"]
    chart = section(made, records).values["figures"][1].chart
    assert chart.x.title == "std (weak to strong)"


def test_samples_of_any_class_of_the_attacked_are_drawn_in_percent(made):
    def samples(defence, asked, whichever):
        readings = tuple(
            Reading(name=name, value=value, low=value, high=value, n=50, chance=chance, leaks="high")
            for name, value, chance in (("recognised", asked, 0.1), ("recognised_any", whichever, 0.5))
        )
        return made.record(defence, psnr=None, extra=readings)

    chart = draw([samples(None, 0.9, 0.9), samples(TopK(), 0.0, 0.8)])
    assert sorted(point.y for one in chart.panels[0].series for point in one.points) == pytest.approx([80, 90])
    assert chart.panels[0].y.title.startswith("samples recognised, any class")
