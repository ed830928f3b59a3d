"""The result of an audit: typed verdicts, a table, a report, and what a notebook shows."""

from __future__ import annotations

import html.parser
import json
import shutil
import sys

import pytest

from leaktight import audit_model
from leaktight.api.result import ModelAudit, ResultTable, TableRow
from leaktight.defences import GaussianNoise
from leaktight.findings.headline import headline_of
from leaktight.findings.summary import summarise
from leaktight.running import Store


@pytest.fixture(scope="module")
def result(make_network, arrays, cheap):
    return audit_model(make_network(), arrays, [GaussianNoise(std=1.0)], **{**cheap, "rounds": 60})


class Cells(html.parser.HTMLParser):
    """The cells of the tables of a page, and every tag."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.tags, self.open = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open:
            self.cells[-1] += data


def test_verdicts_are_typed_and_say_what_they_rest_on(result):
    bare = result.verdicts[0]
    assert (bare.name, bare.leak, bare.verdict, bare.attack) == ("no defence", "images", "leaks", "analytic")
    assert bare.price is None
    assert bare.reading.n == 2
    assert bare.sentence.startswith("No defence: leaks. ")
    noise = next(found for found in result.verdicts if found.leak == "images" and found.defence.kind != "none")
    assert noise.defence == GaussianNoise(std=1.0)
    assert noise.price.low <= noise.price.value <= noise.price.high


def test_the_table_is_a_data_frame(result):
    pandas = pytest.importorskip("pandas")
    table = result.table
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == list(TableRow._fields)
    assert list(table["verdict"]) == [found.verdict for found in result.verdicts]


def test_the_table_without_pandas_is_a_list_that_can_be_read(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = result.table
    assert type(table) is ResultTable
    assert [row.verdict for row in table] == [found.verdict for found in result.verdicts]
    lines = repr(table).splitlines()
    assert lines[0].split() == list(TableRow._fields)
    assert lines[1].startswith("no defence")
    assert len(lines) == 1 + len(table)


def test_the_report_is_one_file_for_its_owner(result, tmp_path):
    path = result.report(tmp_path / "mine.html")
    assert path == tmp_path / "mine.html"
    assert path.stat().st_mode & 0o077 == 0
    assert "Audit of Net" in path.read_text()
    assert "data:image" in path.read_text()
    assert "data:image" not in result.report(tmp_path / "passed-on.html", redact=True).read_text()


def test_the_summary_is_that_of_the_folder(result):
    assert result.summary == json.loads((result.folder / "summary.json").read_text())
    assert [found["verdict"] for found in result.summary["verdicts"]] == [found.verdict for found in result.verdicts]


def test_a_notebook_shows_headline_and_verdicts_and_loads_nothing(result):
    shown = Cells(result._repr_html_())
    assert shown.tags <= {"p", "table", "tr", "td", "b"}
    assert shown.open == []
    assert [cell for cell in shown.cells if cell == "No defence"]
    assert [cell for cell in shown.cells if cell.startswith("Gaussian noise")]
    assert result._repr_html_().startswith(f"<p>{headline_of(summarise(result.records))}</p>")
    assert "http" not in result._repr_html_()


def test_repr_is_short_and_str_is_the_sentences(result):
    assert repr(result).startswith("<ModelAudit of Net: ")
    assert "leaks" in repr(result)
    assert "\n" not in repr(result)
    assert str(result).splitlines() == [found.sentence for found in result.verdicts]


def test_a_shortened_audit_says_so_among_its_flags(result, monkeypatch, tmp_path):
    with Store.read(result.folder) as store:
        plan = store.plan().model_copy(update={"caveats": ("A time budget shortened this audit.",)})
    monkeypatch.setattr(Store, "plan", lambda store: plan)
    shortened = ModelAudit("Net", shutil.copytree(result.folder, tmp_path / "copy"), result.records)
    told = [flag["sentence"] for flag in shortened.summary["flags"]]
    assert [flag.sentence for flag in shortened.flags] == told
    assert "A time budget shortened this audit." in told


def test_nothing_measured_is_said(tmp_path, result):
    empty = ModelAudit("Net", shutil.copytree(result.folder, tmp_path / "copy"), ())
    assert empty.verdicts == ()
    assert "nothing measured" in repr(empty)
    assert "Nothing was measured" in empty._repr_html_()
