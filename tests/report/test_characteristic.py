import re

import pytest

from leaktight.core.metric import Reading
from leaktight.defences import GaussianNoise, LaplaceNoise
from leaktight.report import characteristic
from leaktight.report.characteristic import cap_tables, characteristic_section, regions_of
from leaktight.report.page import Page


@pytest.fixture
def page(made):
    def make(records, redact=False):
        return Page.of(records, made.plan(), made.VERSIONS, made.gallery(records), redact)

    return make


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.split('id="characteristic"')[1].split("</section>")[0]))


def test_the_section_stands_after_the_trade_off_and_says_what_the_regions_do_not_promise(made, report):
    page = report(made.sweep())
    anchors = re.findall(r'<section id="([^"]+)"', page)
    assert anchors.index("characteristic") == anchors.index("trade-off") + 1
    text = text_of(page)
    assert "bounds the error of solving a layer's equations from above" in text
    assert "it does not prove that attacks fail" in text
    assert "Gaussian noise over std, under the attack dlg2019" in text


def test_an_audit_without_sweeps_or_readings_has_no_such_section(made, page, report):
    assert characteristic_section(page([made.record(), made.record(GaussianNoise())])) is None
    assert characteristic_section(page([])) is None
    assert 'id="characteristic"' not in report([made.record()])


def test_records_of_old_releases_still_get_their_cap(made, page, report):
    old = [made.record(d, labels=0.25) for d in (None, GaussianNoise(std=0.1), GaussianNoise(std=1))]
    section = characteristic_section(page(old))
    (block,) = section.values["blocks"]
    assert block["figures"] == []
    assert block["regions"] == []
    assert block["pairs"] is None
    assert "0.20 (" in text_of(report(old))


def test_the_table_has_a_column_for_each_distance_and_batch_size(made, page):
    curves = page(made.sweep() + made.sweep(batch_size=4)).summary.curves
    (table,) = cap_tables(curves)
    assert (table["aims"], table["sizes"]) == (["reconstruction", "membership", "tracing"], [1, 4])
    noise, top_k = table["lines"]
    assert (noise["name"], noise["over"]) == ("Gaussian noise", "3 strengths, std 0.0001 to 0.01")
    assert len(noise["cells"]) == 6
    assert noise["cells"][0][0].startswith("0.30 (")
    assert top_k["cells"][0][1] == ""
    assert noise["cells"][0][1] == "highest"


def test_best_is_what_no_other_interval_reaches(made, page):
    good = [made.record(GaussianNoise(std=std), extra=made.characteristic(3.0, 0.9)) for std in (0.1, 1.0)]
    poor = [made.record(LaplaceNoise(scale=scale), extra=made.characteristic(3.0, 0.1)) for scale in (0.1, 1.0)]
    (table,) = cap_tables(page(good + poor).summary.curves)
    assert [line["cells"][0][1] for line in table["lines"]] == ["best", ""]
    same = [made.record(LaplaceNoise(scale=scale), extra=made.characteristic(3.0, 0.9)) for scale in (0.1, 1.0)]
    (table,) = cap_tables(page(good + same).summary.curves)
    assert [line["cells"][0][1] for line in table["lines"]] == ["", ""]


def test_defences_that_were_swept_over_other_regions_are_not_ranked(made, page, report):
    good = [made.record(GaussianNoise(std=std), extra=made.characteristic(3.0, 0.9)) for std in (0.1, 1.0)]
    poor = [
        made.record(LaplaceNoise(scale=scale), extra=made.characteristic(ratio, 0.1))
        for scale, ratio in ((0.1, 30.0), (1.0, 3.0))
    ]
    (table,) = cap_tables(page(good + poor).summary.curves)
    assert [line["cells"][0][1] for line in table["lines"]] == ["", ""]
    assert table["unlike"]
    assert "so none is marked: their strengths lie in other regions" in text_of(report(good + poor))
    assert "so none is marked" not in text_of(report(made.sweep()))


def test_the_attack_that_lowers_cap_most_counts(made, page):
    def weaker(reading):
        return reading.model_copy(update={"value": 9.0}) if reading.name == "rmse_relative" else reading

    weak = [r.model_copy(update={"readings": tuple(map(weaker, r.readings))}) for r in made.sweep(label="weak")]
    (table,) = cap_tables(page(weak + made.sweep()).summary.curves)
    assert sorted(table["attacks"]) == ["dlg2019", "weak"]
    assert table["lines"][0]["cells"][0][0].startswith("0.30 (")


def test_what_was_measured_of_the_theorem_is_told_by_region(made, page):
    green, white, red = regions_of(page(made.sweep()).summary.curves)
    assert red == {"name": "red", "strengths": "2", "condition": "8 of 16 messages", "bound": "2.5", "error": "0.1"}
    assert (green["condition"], green["bound"], green["error"]) == ("0 of 16 messages", "-", "1")
    assert white["strengths"] == "2"


def test_scenarios_have_blocks_of_their_own(made, page):
    other = made.SCENARIO.model_copy(update={"rounds": 5})
    section = characteristic_section(page(made.sweep() + made.sweep(scenario=other)))
    assert [block["scenario"] for block in section.values["blocks"]] == [1, 2]
    names = [figure.name for block in section.values["blocks"] for figure in block["figures"]]
    assert names == ["plot-curve-1-0", "plot-curve-1-1", "plot-curve-2-0", "plot-curve-2-1"]


def test_the_number_of_figures_is_bounded_and_what_is_left_out_is_told(made, page, monkeypatch):
    monkeypatch.setattr(characteristic, "MOST_FIGURES", 1)
    section = characteristic_section(page(made.sweep() + made.sweep(label="other") + made.sweep(batch_size=8)))
    (block,) = section.values["blocks"]
    assert len(block["figures"]) == 1
    assert block["left"] == 1


def test_pictures_are_in_the_whole_report_and_not_in_the_redacted_one(made, report):
    whole, passable = report(made.sweep()), report(made.sweep(), redact=True)
    assert "rebuilt in each region" in text_of(whole)
    assert "data:image" not in passable
    assert "rebuilt in each region" not in text_of(passable)
    assert "Gaussian noise over std" in text_of(passable)


def test_names_are_escaped(made, report):
    page = report(made.sweep(label="<script>alert(1)</script>"))
    assert "<script>alert" not in page


def test_a_utility_that_is_not_accuracy_keeps_its_name(made, page):
    auc = (Reading(name="auc", value=0.75, low=0.7, high=0.8, chance=0.5),)
    records = [
        made.record(GaussianNoise(std=s), accuracy=None, extra=made.characteristic(1 / s, 0.5) + auc)
        for s in (0.1, 1.0)
    ]
    [block] = characteristic_section(page(records)).values["blocks"]
    [figure] = block["figures"]
    assert figure.chart.panels[0].y.title == "test AUC"


def test_strengths_that_made_the_model_useless_are_told_and_never_best(made, page, report):
    good = [made.record(GaussianNoise(std=std), extra=made.characteristic(3.0, 0.9)) for std in (0.1, 1.0)]
    poor = [made.record(LaplaceNoise(scale=scale), extra=made.characteristic(3.0, 0.1)) for scale in (0.1, 1.0)]
    good[1] = made.record(GaussianNoise(std=1.0), accuracy=0.1, extra=made.characteristic(3.0, 9.0))
    (table,) = cap_tables(page([made.record(), *good, *poor]).summary.curves)
    noise, laplace = table["lines"]
    assert (noise["useless"], noise["cells"][0][1], laplace["cells"][0][1]) == (1, "", "")
    assert "under 1 of them the model learned nothing" in text_of(report([made.record(), *good, *poor]))
