"""Labels over training: a panel for each attack and layer, a line for each defence, numbers in tables, nothing single redacted."""

import pytest

from leaktight.attacks import Clustering, GradientNorm
from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.record import Cell, Status
from leaktight.core.threat import ThreatModel
from leaktight.data import Npz
from leaktight.defences import MaxNorm, SumKL
from leaktight.findings import Images, Labels
from leaktight.findings.redaction import redact_records
from leaktight.findings.rows import rows_of
from leaktight.learning import Split
from leaktight.metrics.norm_histogram import BINS
from leaktight.report.findings import glossary_section, summary_section
from leaktight.report.label_leak import chart_of, labels_section, leak_curves, smooth, steps_of, strongest_curves
from leaktight.report.numbers import checks_section, table_section
from leaktight.report.page import Page
from leaktight.report.parameters import in_words
from leaktight.report.tradeoff import tradeoff_section

DEFENCES = (Undefended(), SumKL(bound=0.1), SumKL(bound=0.4), MaxNorm())


@pytest.fixture(scope="module")
def scenario():
    data, model = {"kind": "rare_digit"}, {"kind": "mlp", "hidden": [8]}
    return Split.model_validate({"data": data, "model": model, "rounds": 40, "batch_size": 64, "moments": 4})


@pytest.fixture
def record(made, scenario):
    def make(defence, value, attack="norm", seed=0, layers=(None, "linear1"), steps=8, **more):
        readings = []
        for layer in layers:
            each = tuple(value + 0.01 * (step % 3 - 1) for step in range(steps))
            common = {"n": steps, "leaks": "high", "against": "raw", "layer": layer, "chance": 0.5}
            readings += [
                Reading(name="leak_auc", value=value, low=value - 0.02, high=value + 0.02, each=each, **common),
                Reading(name="leak_auc_q95", value=value + 0.01, low=value, high=value + 0.02, **common),
            ]
        counts = {"norm_negative": 10, "norm_positive": 60}
        readings += [
            Reading(name=name, value=1.0, n=20, against="raw", each=tuple(20.0 * (at == place) for at in range(BINS)))
            for name, place in counts.items()
        ]
        readings.append(Reading(name="auc", value=0.9, low=0.88, high=0.92, chance=0.5))
        probe = Attempt(
            attack=GradientNorm() if attack == "norm" else Clustering(), threat=ThreatModel(seat="feature-party")
        )
        settings = {"scenario": scenario, "probe": probe, "batch_size": 64, "victims": 8, "stage": "training", **more}
        return made.record(
            defence, psnr=None, accuracy=None, label=attack, seed=seed, extra=tuple(readings), **settings
        )

    return make


@pytest.fixture
def records(record):
    values = dict(zip(DEFENCES, (0.97, 0.8, 0.51, 0.7), strict=True))
    return [record(defence, value, attack) for attack in ("norm", "clustering") for defence, value in values.items()]


@pytest.fixture
def page(made):
    def make(records, redact=False):
        shown = redact_records(records) if redact else records
        return Page.of(shown, made.plan(), made.VERSIONS, lambda key: None, redact)

    return make


def test_one_chart_of_the_strongest_attack_under_each_defence(page, records):
    (block,) = labels_section(page(records)).values["blocks"]
    [figure] = block["figures"]
    assert figure.wide
    assert block["drawn"][0] == "no defence: clustering, at the cut"
    assert len(block["drawn"]) == len(DEFENCES)


def test_a_line_and_two_marks_for_each_defence_above_its_own_chance(page, records):
    (block,) = labels_section(page(records)).values["blocks"]
    panel = block["figures"][0].chart.panels[0]
    lines = [one for one in panel.series if one.stroke]
    marks = [one for one in panel.series if one.symbol]
    assert [one.name for one in lines] == ["no defence", "max-norm", "sumKL (bound 0.1)", "sumKL (bound 0.4)"]
    assert [one.symbol for one in marks] == ["circle", "up"] * len(lines)
    assert [one.tag for one in marks if one.tag] == [one.name for one in lines]
    assert [one.points[0].y for one in marks[:2]] == pytest.approx([94, 96])
    assert panel.level == 0


def test_charts_share_the_colours_of_the_page(page, records):
    found = page(records)
    (block,) = labels_section(found).values["blocks"]
    colours = {one.name: one.colour for one in block["figures"][0].chart.panels[0].series if one.stroke}
    assert colours["no defence"] == "bare"
    assert colours["sumKL (bound 0.1)"] == colours["sumKL (bound 0.4)"] == found.palette.colour_of("sumKL")
    trade = tradeoff_section(found).values["figures"][0].chart.panels[0].series
    assert {one.name: one.colour for one in trade}["sumKL"] == colours["sumKL (bound 0.1)"]
    assert {one.name: one.colour for one in trade}["max-norm"] == colours["max-norm"]


def test_no_line_lies_below_a_chance_level_that_is_not_its_own(record, page):
    high = record(None, 0.9)
    readings = tuple(r.model_copy(update={"chance": 0.73}) if r.name == "leak_auc" else r for r in high.readings)
    records = [high.model_copy(update={"readings": readings}), record(SumKL(bound=0.4), 0.65)]
    found = [curve for row in rows_of(records) for curve in leak_curves(row, records)]
    chart = chart_of(strongest_curves(found), page(records).palette)
    told = {one.name: [point.y for point in one.points] for one in chart.panels[0].series if one.stroke}
    assert min(told["sumKL (bound 0.4)"]) > 0


def test_steps_are_where_the_scenario_looked(scenario):
    cell = Cell(
        scenario=scenario, defence=Undefended(), probe=Attempt(attack=GradientNorm()), stage="training", victims=8
    )
    # Moments at steps 0, 10, 20 and 30 of 40, two steps from each on.
    assert steps_of(cell, 8) == pytest.approx((0.0, 2.5, 25.0, 27.5, 50.0, 52.5, 75.0, 77.5))
    assert steps_of(cell, 4) == (12.5, 37.5, 62.5, 87.5)
    assert steps_of(cell.model_copy(update={"stage": "end"}), 3) == (1, 2, 3)
    assert steps_of(cell, 0) == ()


def test_steps_of_passes_are_where_the_scenario_looked(scenario):
    """Two passes of 22 steps each, looked at from four moments: steps 0, 11, 22 and 33 of 44."""
    passes = Split.model_validate({**dict(scenario), "rounds": 0, "passes": 2})
    assert passes.length % 4 == 0
    cell = Cell(
        scenario=passes, defence=Undefended(), probe=Attempt(attack=GradientNorm()), stage="training", victims=4
    )
    assert steps_of(cell, 4) == (0.0, 25.0, 50.0, 75.0)
    gone = passes.model_copy(update={"data": Npz(path="gone.npz")})
    assert steps_of(cell.model_copy(update={"scenario": gone}), 4) == (12.5, 37.5, 62.5, 87.5)


def test_the_line_is_a_running_median():
    assert smooth([0.5, 0.9, 0.6]) == [0.5, 0.9, 0.6]
    values = [0.5] * 40
    values[7] = 1.0
    assert smooth(values) == [0.5] * 40


def test_seeds_are_averaged_and_seeds_of_other_length_are_not_mixed(record):
    both = [record(None, 0.9, seed=0), record(None, 0.7, seed=1)]
    (row,) = rows_of(both)
    curve = leak_curves(row, both)[0]
    assert curve.values[1] == pytest.approx(0.8)
    odd = [record(None, 0.9, seed=0), record(None, 0.7, seed=1, steps=5)]
    assert leak_curves(rows_of(odd)[0], odd)[0].values[1] == pytest.approx(0.9)


def test_tables_hold_median_quantile_and_chance(page, records):
    (block,) = labels_section(page(records)).values["blocks"]
    norm = next(table for table in block["tables"] if table["attack"] == "norm")
    assert norm["layers"] == ["cut", "linear1"]
    assert norm["lines"]["no defence"][0] == {
        "text": "0.97 / 0.98",
        "chance": "0.50",
        "tone": "leaks",
        "top": True,
        "heat": pytest.approx(0.94),
    }
    assert [cell["tone"] for cell in norm["lines"]["sumKL (bound 0.4)"]] == ["", ""]


def test_a_redacted_report_keeps_the_tables_and_no_step(page, records, report, made):
    section = labels_section(page(records, redact=True))
    (block,) = section.values["blocks"]
    assert (block["figures"], len(block["tables"])) == ([], 2)
    text = report(records, redact=True, gallery=lambda key: None)
    assert "The single steps are left out of a redacted report." in text
    assert "Gradient norms by class" not in text


def test_a_layer_that_one_defence_lacks_is_left_open(page, record):
    (block,) = labels_section(page([record(None, 0.9), record(MaxNorm(), 0.6, layers=(None,))])).values["blocks"]
    assert block["tables"][0]["lines"]["max-norm"][1]["text"] == "-"


def test_an_audit_of_images_has_no_such_section(page, made):
    assert labels_section(page(made.audit())) is None


def test_the_rest_of_the_page_speaks_of_labels(page, records):
    found = page(records)
    [group] = summary_section(found).values["sheet"].groups
    assert (group.lines[0].leak, group.measure) == ("0.97", "AUC, how well labels are told")
    values = glossary_section(found).values
    assert list(values["kinds"]) == ["Leak AUC", "95 % quantile", "Cut", "Test AUC"]
    assert "Its chance level is what scores reach that know nothing" in values["kinds"]["Leak AUC"]
    assert not values["accuracy"]
    section = table_section(found)
    assert section.values["notes"] == [Labels().numbers_note(found.summary.rows)]
    assert {"test AUC", "leak AUC", "leak AUC, 95 % quantile"} <= set(section.values["heads"])
    assert in_words(ThreatModel(seat="feature-party"))["seat"].startswith("the feature party: it follows the protocol")


def test_the_trade_off_is_test_auc_against_leak_auc(page, records):
    section = tradeoff_section(page(records))
    [figure, *_] = section.values["figures"]
    assert (figure.name, figure.caption) == ("plot-tradeoff-1-labels", "Test AUC against leakage")
    assert figure.chart.x.title == "test AUC of the trained model"
    assert figure.chart.panels[0].y.title == "leak AUC"
    series = figure.chart.panels[0].series
    assert all(point.x == pytest.approx(0.9) for one in series for point in one.points)
    assert "leak AUC: 0.970 at the cut" in series[-1].points[0].tip


def test_the_control_of_labels_is_explained(page, made, records):
    exact = Reading(name="leak_auc", value=1.0, n=4, chance=0.5, leaks="high", against="raw", each=(1.0,) * 4)
    values = checks_section(page([*records, made.control(psnr=None, extra=(exact,))])).values
    assert values["controls"] == [Labels.control]
    assert values["checks"][0]["result"] == "passed"
    values = checks_section(page([made.control()])).values
    assert values["controls"] == [Images.control]
    failed = made.control(psnr=None, extra=(), status=Status.FAILED, reason="no")
    values = checks_section(page([failed, made.control(psnr=None, extra=(exact,))])).values
    assert values["controls"] == [Images.control, Labels.control]


def test_the_page_shows_it_all(report, records):
    text = report(records, gallery=lambda key: None)
    for words in ("Labels over training", "Gradient norms by class", "Leak AUC</dt>", "at the cut"):
        assert words in text
    for words in ("An image counts as recognised", "PSNR</dt>", "Images are compared"):
        assert words not in text


def over_passes(record, value, each, **beside):
    """A record whose scores were added up over passes, and what stands beside that."""
    common = {"n": 400, "leaks": "high", "against": "raw", "chance": 0.5}
    added = Reading(name="leak_auc_passes", value=value, low=value - 0.02, high=value + 0.02, each=each, **common)
    others = [Reading(name=f"leak_auc_{name}", value=one) for name, one in beside.items()]
    return record.model_copy(update={"readings": (*record.readings, added, *others)})


def test_scores_over_passes_stand_in_one_table_with_a_curve(page, record):
    beside = {"features": 0.55, "theory": 0.86, "ceiling": 0.68}
    records = [
        over_passes(record(None, 0.9), 0.97, (0.9, 0.95, 0.97), features=0.55),
        over_passes(record(SumKL(bound=0.4), 0.6), 0.88, (0.6, 0.8, 0.88), **beside),
        over_passes(record(SumKL(bound=0.4), 0.6, "clustering"), 0.7, (0.6, 0.65, 0.7)),
    ]
    section = labels_section(page(records))
    (block,) = section.values["blocks"]
    assert block["beside"] == ["one message", "all passes", "features alone", "theory", "ceiling of the bound"]
    lines = [(line["name"], line["where"], [text for _, text in line["cells"]]) for line in block["passes"]]
    assert lines[0] == ("no defence", "norm, at the cut, 3 passes", ["0.90", "0.97", "0.55", "-", "-"])
    assert lines[2] == ("sumKL (bound 0.4)", "norm, at the cut, 3 passes", ["0.60", "0.88", "0.55", "0.86", "0.68"])
    curves = block["curves"][0].chart.panels[0].series
    assert sorted((curve.name, [point.y for point in curve.points]) for curve in curves) == [
        ("no defence", [0.9, 0.95, 0.97]),
        ("sumKL (bound 0.4)", [0.6, 0.8, 0.88]),
    ]


def test_a_redacted_page_has_the_table_without_the_curve(page, record):
    found = over_passes(record(None, 0.9), 0.97, (0.9, 0.95, 0.97))
    (block,) = labels_section(page([found], redact=True)).values["blocks"]
    assert (block["curves"], len(block["passes"])) == ([], 1)
    (plain,) = labels_section(page([record(None, 0.9)])).values["blocks"]
    assert (plain["curves"], plain["passes"]) == ([], [])


def test_the_page_shows_the_passes(report, record):
    shown = report([over_passes(record(SumKL(), 0.6), 0.88, (0.6, 0.8, 0.88), features=0.55)])
    assert "Scores added up over passes" in shown
    assert 'id="plot-passes-0"' in shown
    assert "features alone" in shown


def test_passes_are_drawn_above_what_needs_no_message(page, record):
    def panel(features):
        records = [
            over_passes(record(None, 0.9), 0.97, (0.9, 0.95, 0.97), features=0.55),
            over_passes(record(SumKL(bound=0.4), 0.6), 0.88, (0.6, 0.8, 0.88), features=features),
        ]
        (block,) = labels_section(page(records)).values["blocks"]
        return block["curves"][0].chart.panels[0]

    assert panel(0.55).level == 0.55
    apart = panel(0.7)
    assert apart.level is None
    assert [[point.chance for point in series.points] for series in apart.series] == [
        [None, None, 0.7],
        [None, None, 0.55],
    ]


def test_the_attack_of_a_suite_that_tells_most_is_drawn_by_its_own_steps(page, record, report):
    def suite(defence, answer, member):
        """Return what a suite answered, and what one of its attacks reached."""
        whole = record(defence, answer, layers=(None,))
        each = over_passes(record(defence, member, layers=(None,)), member, (member - 0.1, member))
        extra = [reading.model_copy(update={"by": "surrogate"}) for reading in each.readings if reading.leaks]
        return over_passes(
            whole.model_copy(update={"readings": (*whole.readings, *extra)}), answer, (answer - 0.1, answer)
        )

    records = [suite(None, 0.95, 0.8), suite(SumKL(bound=0.4), 0.6, 0.7)]
    (block,) = labels_section(page(records)).values["blocks"]
    assert block["drawn"] == ["no defence: norm, at the cut", "sumKL (bound 0.4): surrogate (of norm), at the cut"]
    # 0 % is an AUC of 0.5; a mean over the suite and its member would lie between both.
    lines = {one.name: one for one in block["figures"][0].chart.panels[0].series if one.name}
    assert min(point.y for point in lines["no defence"].points) >= 87
    assert min(point.y for point in lines["sumKL (bound 0.4)"].points) >= 37
    assert [(line["where"].partition(",")[0], line["judged"], line["folded"]) for line in block["passes"]] == [
        ("norm", True, False),
        ("surrogate (of norm)", False, True),
        ("norm", False, False),
        ("surrogate (of norm)", True, False),
    ]
    assert [(table["attack"], table["folded"]) for table in block["tables"]] == [
        ("norm", False),
        ("surrogate (of norm)", True),
    ]
    assert report(records).count("<summary>Each other attack of a suite</summary>") == 1
