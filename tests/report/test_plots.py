import json

import pytest

from leaktight.core.metric import Reading
from leaktight.defences import GaussianNoise, LayerGuard, TopK
from leaktight.findings.images import recognised_share
from leaktight.findings.summary import summarise
from leaktight.report.page import Page
from leaktight.report.plots import tradeoff, tradeoff_section


def judgements(records):
    return summarise(records).judgements


def section(made, records):
    return tradeoff_section(Page.of(records, made.plan(), {}, lambda key: None, redact=False))


@pytest.fixture
def records(made):
    strengths = ((0.3, 27, 0.8), (0.05, 19, 0.75), (0.01, 9, 0.6))
    return [made.record(psnr=38, accuracy=0.82)] + [
        made.record(TopK(share=s), psnr=p, accuracy=a) for s, p, a in strengths
    ]


def test_each_kind_is_a_line_from_weak_to_strong_and_no_defence_is_a_star(records):
    line, star = tradeoff(judgements(records))["data"]
    assert (line["name"], star["name"]) == ("top-k", "no defence")
    assert line["x"] == pytest.approx([80, 75, 60])
    assert line["y"] == pytest.approx([100, 37.5, 0])
    assert list(line["text"]) == ["0.3", "0.05", "0.01"]
    assert star["marker"]["symbol"] == "star"


def test_bars_are_the_intervals(records):
    line = tradeoff(judgements(records))["data"][0]
    rows = [j.worst for j in judgements(records) if j.defence.kind == "top_k"]
    for number, row in enumerate(rows):
        assert line["x"][number] + line["error_x"]["array"][number] == pytest.approx(100 * row.utility.high)
        assert line["y"][number] - line["error_y"]["arrayminus"][number] == pytest.approx(
            100 * recognised_share(row).low
        )


def test_leakage_over_strength_starts_at_no_defence_and_shows_chance(made, records):
    plots = section(made, records).plots
    assert list(plots) == ["plot-tradeoff-1-images", "plot-strength-1-images-0"]
    attack, chance = plots["plot-strength-1-images-0"]["data"]
    assert list(attack["x"]) == ["none", "0.3", "0.05", "0.01"]
    assert attack["y"] == pytest.approx([38, 27, 19, 9])
    assert list(chance["y"]) == [made.GREY] * 4


def test_figures_are_plain_json_without_templates(made, records):
    for figure in section(made, records).plots.values():
        assert "template" not in json.loads(json.dumps(figure))["layout"]


def test_without_accuracy_the_trade_off_is_left_out(made):
    records = [made.record(accuracy=None), made.record(GaussianNoise(), psnr=9, accuracy=None)]
    assert tradeoff(judgements(records)) is None
    assert list(section(made, records).plots) == ["plot-strength-1-images-0"]
    assert section(made, [made.control()]) is None


def test_any_reading_about_leakage_can_be_drawn(made):
    def auc(value):
        return (Reading(name="leak_auc", value=value, chance=0.5, leaks="high"),)

    records = [made.record(psnr=None, extra=auc(0.9)), made.record(TopK(), psnr=None, extra=auc(0.6))]
    figure = tradeoff(judgements(records))
    assert figure["layout"]["yaxis"]["title"]["text"] == "leak AUC"
    assert figure["data"][0]["y"] == pytest.approx([0.6])


def test_each_scenario_has_plots_of_its_own(made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    records = [made.record(d, scenario=s) for s in (made.SCENARIO, other) for d in (None, TopK())]
    found = section(made, records)
    assert list(found.plots) == [
        "plot-tradeoff-1-images",
        "plot-strength-1-images-0",
        "plot-tradeoff-2-images",
        "plot-strength-2-images-0",
    ]
    assert found.values["captions"]["plot-tradeoff-2-images"] == "Accuracy against leakage, scenario 2"


def test_a_number_that_is_swept_inside_a_defence_makes_one_line_too(made):
    guards = [LayerGuard(layers=("head",), guard=GaussianNoise(std=std)) for std in (0.01, 0.1)]
    records = [made.record(psnr=38, accuracy=0.82)] + [made.record(guard, psnr=20, accuracy=0.7) for guard in guards]
    line, _ = tradeoff(judgements(records))["data"]
    assert line["name"] == "layer guard (guard Gaussian noise, count 1, layers head)"
    assert list(line["text"]) == ["0.01", "0.1"]
    plots = section(made, records).plots
    assert list(plots) == ["plot-tradeoff-1-images", "plot-strength-1-images-0"]
    assert list(plots["plot-strength-1-images-0"]["data"][0]["x"]) == ["none", "0.01", "0.1"]
    assert plots["plot-strength-1-images-0"]["layout"]["xaxis"]["title"]["text"] == "std (weak to strong)"


def test_samples_of_any_class_of_the_attacked_are_drawn(made):
    def samples(defence, asked, whichever):
        readings = tuple(
            Reading(name=name, value=value, low=value, high=value, n=50, chance=chance, leaks="high")
            for name, value, chance in (("recognised", asked, 0.1), ("recognised_any", whichever, 0.5))
        )
        return made.record(defence, psnr=None, extra=readings)

    figure = tradeoff(summarise([samples(None, 0.9, 0.9), samples(TopK(), 0.0, 0.8)]).judgements)
    assert sorted(trace["y"][0] for trace in figure["data"]) == [0.8, 0.9]
    assert figure["layout"]["yaxis"]["title"]["text"].startswith("samples recognised, any class")
