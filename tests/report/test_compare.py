"""The page of a comparison: every verdict of every audit, no script, and nothing that is not escaped."""

import re

import pytest

from leaktight.defences import TopK
from leaktight.findings.audit_comparison import Audit, compare
from leaktight.findings.summary import summarise
from leaktight.report.compare import render_comparison


@pytest.fixture
def page(made):
    def make(*audits, title="Photos <b>&</b> a network"):
        letters = "ABC"
        read = [
            Audit(
                letter, f"out/{letter}", made.plan(title=title), tuple(records), made.VERSIONS, {}, summarise(records)
            )
            for letter, records in zip(letters, audits, strict=False)
        ]
        return render_comparison(compare(read))

    return make


def test_it_shows_what_changed_beside_each_other(made, page):
    top = TopK(share=0.3)
    found = page(
        [made.record(psnr=38), made.record(top, 31)], [made.record(psnr=38), *made.two_principles(top, accuracy=0.75)]
    )
    assert "1 of 2 shared verdicts changed between A and B." in found
    changed, same = found.split("The same")
    assert re.findall(r'<span class="badge">(.*?)</span>', changed) == ["leaks", "not broken"]
    assert "Price: 5.0 points of accuracy" in changed
    assert "No defence, images" in same
    assert "Photos &lt;b&gt;&amp;&lt;/b&gt; a network" in found
    assert "<script" not in found
    assert "http" not in re.sub(r"http-equiv", "", found)


def test_a_model_that_learned_nothing_is_said_once(made, page):
    useless, leaking = made.two_principles(TopK(share=0.3), accuracy=0.1), [made.record(TopK(share=0.3), 31, 0.1)]
    bare = [made.record(psnr=38)]
    found = page([*bare, *useless], [*bare, *leaking])
    assert re.findall(r'<span class="badge( useless)?">(.*?)</span>', found)[:3] == [
        ("", "useless"),
        ("", "leaks"),
        (" useless", "the model learned nothing"),
    ]


def test_it_says_where_an_audit_is_silent(made, page):
    bare, top = made.record(psnr=38), made.record(TopK(share=0.3), 31)
    found = page([bare, top], [bare], [bare, top])
    assert '<span class="absent">not measured</span>' in found
    assert "Only in" not in found


def test_nothing_in_common_is_one_sentence(made, page):
    found = page([made.record(TopK(share=0.3), 31)], [made.record(TopK(share=0.1), 31)])
    assert "A and B have nothing in common" in found
    assert "<article" not in found
    assert "Only in" not in found
