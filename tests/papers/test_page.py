"""The page of a reproduction: what holds first, then tables and charts, ours beside the published numbers."""

import re

import pytest

from leaktight.papers.check import above, tally
from leaktight.papers.number_text import format_of
from leaktight.papers.page import PAGE_FILE, render_page, write_page
from leaktight.papers.paper import Experiment, Paper
from leaktight.papers.reproduction import Reproduction
from leaktight.papers.row import claims

ROWS = [
    {"defence": name, "strength": strength, "auc": value, "auc_low": value - 0.1, "auc_high": value + 0.1}
    for name, values in (("none", (0.9, 0.9, 0.9)), ("noise", (0.8, 0.7, 0.5)))
    for strength, value in zip((0.1, 1.0, 10.0), values, strict=True)
]
PUBLISHED = [{"defence": "noise", "strength": 1.0, "auc": 0.65}]


@pytest.fixture
def paper():
    return Paper(
        name="some-paper",
        title="A paper (Somebody 2020)",
        setup=lambda order: None,
        experiments=(
            Experiment(table="trade_off", keys=("defence", "strength"), rows=lambda setup, records: ROWS),
            Experiment(table="words", keys=("defence",), rows=lambda setup, records: []),
        ),
    )


@pytest.fixture
def done():
    return Reproduction(
        paper="some-paper",
        scale="smoke",
        seed=0,
        seconds=120.0,
        tables={"trade_off": ROWS, "words": []},
        published={"trade_off": PUBLISHED, "words": claims(("Noise is better.", "Fig. 1"))},
        checks=(above("AUC falls", 0.4, 0.0), above("AUC is <b>1</b>", 0.5, 1.0), above("A gap", None, 0.0)),
        remarks=("Run with `--steps 1`.",),
    )


def words(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<(style|script)>.*?</\1>", "", page)))


def test_what_holds_comes_first_and_a_smoke_run_says_what_it_is(paper, done):
    text = words(render_page(paper, done))
    assert "What holds 1 holds, 1 does not, 1 not measured, of 3." in text
    assert text.index("AUC is &lt;b&gt;1") < text.index("A gap") < text.index("AUC falls")
    assert "The scale smoke shows that every part runs" in text
    assert text.index("AUC is &lt;b&gt;1") < text.index("AUC falls")
    assert "Published: Noise is better. (Fig. 1)" in text
    small = words(render_page(paper, done.model_copy(update={"scale": "small"})))
    assert "shows that every part runs" not in small


def test_a_reason_stands_below_its_check(paper, done):
    check = above("AUC falls", -0.4, 0.0).model_copy(update={"why": "Too short.", "unless": "More rounds help."})
    text = words(render_page(paper, done.model_copy(update={"checks": (check,)})))
    assert "AUC falls Too short. More rounds help." in text


def test_published_columns_are_there_only_with_a_number(paper, done):
    assert '<th scope="col">auc, published</th>' in render_page(paper, done)
    without = done.model_copy(update={"published": {"trade_off": [{"defence": "other", "strength": 1.0, "auc": 0.6}]}})
    page = render_page(paper, without)
    assert "auc, published" not in page
    assert "No number of this table was published for these rows." in page


def test_it_is_written_beside_the_audits_and_an_earlier_one_is_kept(paper, done, tmp_path):
    told = []
    path = write_page(paper, done, tmp_path, tell=told.append)
    assert path == tmp_path / PAGE_FILE
    write_page(paper, done.model_copy(update={"seed": 1}), tmp_path, tell=told.append)
    assert told == ["The earlier reproduction.html was kept as reproduction-1.html."]


def test_claims_are_counted():
    assert tally([]) == "Nothing is checked."
    assert tally([above("a", 1.0, 0.0)] * 2) == "2 hold, 0 do not, of 2."


def test_numbers_have_the_digits_of_the_terminal(paper, done):
    text = format_of("auc", [*ROWS, *PUBLISHED])
    shown = render_page(paper, done)
    assert f"<td>{text(0.9)} ({text(0.8)} to {text(1.0)})</td><td>-</td>" in shown
    assert f"<td>{text(0.65)}</td>" in shown
    assert len({len(text(value)) for value in (0.9, 0.7, 0.65)}) == 1
