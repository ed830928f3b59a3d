"""Tables: our rows beside the published ones, and their charts."""

from leaktight.papers.row import claims
from leaktight.papers.table import chart_of, table_of

ROWS = [
    {"defence": name, "strength": strength, "auc": value, "auc_low": value - 0.1, "auc_high": value + 0.1}
    for name, values in (("none", (0.9, 0.9, 0.9)), ("noise", (0.8, 0.7, 0.5)))
    for strength, value in zip((0.1, 1.0, 10.0), values, strict=True)
]
PUBLISHED = [{"defence": "noise", "strength": 1.0, "auc": 0.65}]


def test_a_number_that_names_rows_becomes_the_axis_of_lines():
    known = {("noise", 1.0): PUBLISHED[0]}
    chart = chart_of(ROWS, known, ("defence", "strength"), ["auc"])
    assert [text for _, text in chart.x.ticks] == ["0.1", "1", "10"]
    none, noise, published = chart.panels[0].series
    assert (none.name, noise.name) == ("none", "noise")
    assert [point.y for point in noise.points] == [0.8, 0.7, 0.5]
    assert (published.symbol, [(point.x, point.y) for point in published.points]) == ("cross", [(1.0, 0.65)])


def test_other_tables_have_a_dot_for_each_row():
    rows = [{"defence": name, "auc": value, "auc_low": None, "auc_high": None} for name, value in (("a", 1), ("b", 2))]
    chart = chart_of(rows, {("a",): {"auc": 1.5}}, ("defence",), ["auc"])
    ours, published = chart.panels[0].series
    assert [text for _, text in chart.panels[0].y.ticks] == ["a", "b"]
    assert [point.x for point in ours.points] == [1, 2]
    assert [point.x for point in published.points] == [1.5]
    assert chart_of([], {}, ("defence",), ["auc"]) is None
    assert chart_of([{"defence": str(n), "auc": n} for n in range(99)], {}, ("defence",), ["auc"]) is None


def test_a_published_column_stands_beside_ours_where_a_row_of_ours_has_it():
    table = table_of("trade_off", ROWS, [*PUBLISHED, *claims(("Noise is better.", "Fig. 1"))], ("defence", "strength"))
    assert (table.title, list(table.heads)) == ("Trade off", ["defence", "strength", "auc", "auc, published"])
    assert table.lines[4] == ["noise", "1", "0.7 (0.6 to 0.8)", "0.65"]
    assert table.claims == ["Noise is better. (Fig. 1)"]
    assert table.is_published
    other = table_of("trade_off", ROWS, [{"defence": "other", "strength": 1.0, "auc": 0.6}], ("defence", "strength"))
    assert (list(other.heads), other.is_published) == (["defence", "strength", "auc"], False)
