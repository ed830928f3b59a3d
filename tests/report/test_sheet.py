"""The sheet: one page for who decides, the same in HTML and as PDF, and no word of it contradicts another."""

import io

import pypdf
import pytest

from leaktight.captures import AsCaptured
from leaktight.core.metric import Reading
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.headline import headline_of
from leaktight.findings.summary import summarise
from leaktight.report.findings import explain_bars
from leaktight.report.page import Page
from leaktight.report.pdf import draw_sheet
from leaktight.report.sheet import MEANINGS, Sheet, price_text


@pytest.fixture
def sheet(made):
    def make(records):
        return Sheet.of(Page.of(records, made.plan(), made.VERSIONS, lambda key: None, redact=False))

    return make


def read(content):
    reader = pypdf.PdfReader(io.BytesIO(content))
    return [" ".join(page.extract_text().split()) for page in reader.pages]


def test_no_defence_first_then_the_best_and_the_useless_last(sheet, made):
    records = [
        *made.two_principles(TopK(), accuracy=0.75),
        made.record(TopK(share=0.3), psnr=35, label="adaptive", attack=made.ADAPTIVE),
        made.record(GaussianNoise(), psnr=9, accuracy=0.1, label="adaptive", attack=made.ADAPTIVE),
    ]
    [group] = sheet(records).groups
    assert [(line.name, line.word) for line in group.lines] == [
        ("No defence", "leaks"),
        ("Top-k (share 0.1)", "not broken"),
        ("Top-k (share 0.3)", "leaks"),
        ("Gaussian noise (std 0.01)", "useless"),
    ]
    assert (group.measure, group.unit) == ("images recognised", "points of accuracy")
    assert [line.price for line in group.lines][:2] == ["\u2013", "5.0 (1.3 to 8.6)"]


def test_the_bar_has_the_interval_and_the_chance_of_its_own_row(sheet, made):
    images, labels = sheet([made.record(labels=0.25), made.record(TopK(), psnr=17, labels=0.5)]).groups
    assert images.lines[1].gauge.value == 0.125
    assert images.lines[1].gauge.low < 0.125 < images.lines[1].gauge.high
    assert (labels.lines[0].gauge.value, labels.lines[0].gauge.chance) == (0.75, pytest.approx(0.1))
    assert (labels.lines[0].leak, labels.lines[0].chance) == ("75 %", "guessing 10 %")


def test_every_word_is_explained_and_the_headline_is_that_of_the_terminal(sheet, made):
    records = made.audit()
    found = sheet(records)
    page = Page.of(records, made.plan(), made.VERSIONS, lambda key: None, redact=False)
    assert found.headline == headline_of(page.summary)
    assert set(found.words) == {line.word for group in found.groups for line in group.lines} <= set(MEANINGS)


def test_what_is_advised_is_no_worse_than_any_line_on_the_printed_numbers(sheet, made):
    records = [made.record(psnr=38)]
    records += [
        made.record(TopK(share=share), psnr=psnr, accuracy=accuracy)
        for share, psnr, accuracy in ((0.1, 17, 0.78), (0.2, 18, 0.78), (0.3, 18, 0.77))
    ]
    found = sheet(records)
    named = {advice.defence for advice in found.advice if advice.defence is not None}
    assert named == {TopK(share=0.1)}


def test_scope_counts_declared_defences_only(sheet, made):
    assert sheet([made.record(), made.record(AsCaptured(), psnr=38)]).scope.startswith("1 attack, 1 seed, 2 cells")
    several = [made.record(), *(made.record(TopK(share=share)) for share in (0.1, 0.2))]
    assert sheet(several).scope.startswith("1 defence in 2 settings, 1 attack")


def test_scenarios_are_named(sheet, made):
    other = made.Handmade.model_construct(kind="handmade", rounds=7)
    groups = sheet([made.record(), made.record(scenario=other)]).groups
    assert [group.heading.split(" (")[0] for group in groups] == ["Images, scenario 1", "Images, scenario 2"]


def test_a_price_that_is_not_told_is_a_dash(made):
    [bare] = summarise([made.record()]).judgements
    assert price_text(bare) == "\u2013"


def test_the_pdf_says_the_same_on_one_page(sheet, made):
    found = sheet(made.audit())
    [text] = read(draw_sheet(found))
    assert " ".join(found.headline.split()) in text
    for group in found.groups:
        for line in group.lines:
            assert line.name in text
            assert line.word in text
    for advice in found.advice:
        assert " ".join(advice.sentence.split()) in text
    assert found.doubts[0][:60] in text
    assert "No attack that fails shows that none can succeed." in text


def test_a_leak_under_a_useless_model_says_both(sheet, made):
    [text] = read(draw_sheet(sheet([made.record(psnr=38), made.record(TopK(), psnr=38, accuracy=0.1)])))
    assert "leaks, useless model" in text


def test_a_long_audit_still_fits_and_what_is_left_out_is_counted(sheet, made):
    records = [made.record(labels=0.0)]
    records += [made.record(TopK(share=(number + 1) / 100), psnr=30, labels=0.0) for number in range(60)]
    [text] = read(draw_sheet(sheet(records)))
    assert "more settings in the report." in text


def test_the_same_audit_makes_the_same_pdf_and_strange_letters_do_no_harm(sheet, made):
    found = sheet(
        [made.record(label="\u0430\u0442\u0430\u043a\u0430 \u2013 \u201cx\u201d"), made.record(TopK(), psnr=9)]
    )
    assert draw_sheet(found) == draw_sheet(found)
    assert '???? - "x"' in read(draw_sheet(found))[0].replace("?????", "????")


def test_an_epsilon_that_promises_too_little_stands_where_the_attacks_put_it(sheet, made):
    notes = {"dp_sgd.epsilon": 9.0, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    private = [
        one.model_copy(update={"notes": notes}) if one.cell.defence == DPSGD() else one
        for one in made.two_principles(DPSGD(), accuracy=0.75)
    ]
    weak = made.record(DPSGD(clip=2.0), psnr=9, notes=notes, label="adaptive", attack=made.ADAPTIVE)
    reduced = made.record(GaussianNoise(), psnr=17, label="adaptive", attack=made.ADAPTIVE)
    [group] = sheet([*private, reduced, weak]).groups
    assert [(line.name.split(" (")[0], line.word) for line in group.lines[1:]] == [
        ("DP-SGD", "bounded"),
        ("Gaussian noise", "reduced"),
        ("DP-SGD", "bounded"),
    ]


def test_attacks_that_are_tried_together_are_counted(sheet, made):
    records = [made.record(attack=made.TEAM, label="team", extra=made.members({"search": 31, "simple": 12}))]
    found = sheet(records)
    assert found.groups[0].lines[0].attack == "team (2 together)"
    assert found.scope.startswith("2 attacks, 1 seed")


def test_what_bars_show_is_said_and_no_more(sheet, made):
    left = (Reading(name="objective", value=1e-9, n=4), Reading(name="diverged", value=0, n=4))
    assert explain_bars(sheet([made.record(psnr=None, accuracy=None, extra=left)])) == ""
    assert explain_bars(sheet([made.record()])) == (
        "Bar: what the strongest attack got; thin line: its 95 % interval; tick: what guessing gets."
    )
