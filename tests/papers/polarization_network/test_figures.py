from __future__ import annotations

from pathlib import Path

from leaktight.papers import Tables
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.polarization_network.figures import characteristics, regions, sections, summary_bars


def test_each_setting_has_bars_of_both_attackers_and_published_values_where_there_are_any(tables: Tables) -> None:
    published = [{**row, "data_set": "digits"} for row in PAPER.published_tables()["cap"] if row["data_set"] == "MNIST"]
    figures = summary_bars(tables["cap"], published)
    assert [figure.caption for figure in figures] == [
        f"CAP on digits, {stage} network, batch {size} (Fig. 1, 25)"
        for stage, size in (("initial", 1), ("initial", 4), ("trained", 1))
    ]
    first, last = (figure.chart.panels for figure in (figures[0], figures[-1]))
    assert [panel.y.title for panel in first] == ["CAP, reconstruction", "CAP, membership", "CAP, tracing"]
    names = [series.name for series in first[0].series if series.name]
    assert names == ["paper's attacker", "strongest attacker", "published"]
    bar = first[0].series[0]
    assert bar.filled
    assert bar.points[1].y == tables["cap"][0]["cap"]
    assert [len(series.points) for series in first[0].series if series.symbol == "cross"] == [4]
    assert not [series for series in last[0].series if series.symbol == "cross"]


def test_both_stages_stand_in_one_characteristic(tables: Tables) -> None:
    figures = characteristics(tables["ppc"])
    assert [figure.caption.split(" on ")[0] for figure in figures] == ["Gaussian", "PPDL-0.05", "PPDL-0.3", "SPN"]
    accuracy, errors = figures[0].chart.panels
    assert accuracy.y.title == "accuracy of the trained network"
    assert [series.name for series in errors.series] == [
        "paper's attack, initial network",
        "paper's attack, trained network",
        "strongest attacker, initial network",
        "strongest attacker, trained network",
    ]
    assert [point.y for point in accuracy.series[0].points] == [40.0, 40.0]


def test_without_audits_there_are_no_pictures(tables: Tables, tmp_path: Path) -> None:
    assert regions(tmp_path) == []
    [section] = sections(tables, {}, tmp_path)
    assert not section.private
    assert section.values["bars"]
