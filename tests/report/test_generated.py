"""Made-up pictures: scores for every defence and attack, a grid over the rounds, and no picture in a redacted report."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.metric import Reading
from leaktight.defences import ClassKeys, TopK
from leaktight.findings.redaction import redact_records
from leaktight.report.generated import MOST_ROUNDS, drawable, generated_section, pick_rounds
from leaktight.report.page import Page


def readings(value, whichever=None):
    whichever = value if whichever is None else whichever
    return (
        Reading(
            name="recognised", value=value, low=value, high=value, n=50, chance=0.1, leaks="high", each=(value,) * 50
        ),
        Reading(name="recognised_any", value=whichever, low=whichever, high=whichever, n=50, chance=0.5, leaks="high"),
        Reading(name="recognised_confidence", value=value, n=50, chance=0.1, leaks="high"),
        Reading(name="recognised_median", value=value / 2, n=12),
        Reading(name="recognised_best", value=1.0, n=3, each=(0.0, 0.5, 1.0)),
        Reading(name="nearest_any", value=0.51, n=50, chance=0.5, leaks="low", against="raw"),
        Reading(name="mean_picture", value=1.5, n=50, chance=1.0, leaks="low", against="raw"),
        Reading(name="nearest_private", value=0.5, low=0.48, high=0.52, n=50, chance=0.5, leaks="low", against="raw"),
        Reading(name="sample_diversity", value=0.25, n=50, chance=0.0),
    )


@pytest.fixture
def records(made):
    return [
        made.record(psnr=None, label="GAN", extra=readings(value), defence=defence)
        for value, defence in ((0.9, None), (0.0, ClassKeys()), (0.8, TopK()))
    ]


def gallery(rounds=3, owned=2):
    images = torch.randint(0, 255, (rounds, 4, 1, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return {"owned": images[0, :owned], "made": images[-1], "history": images, "rounds": 4 * torch.arange(rounds)}


@pytest.fixture
def page(made):
    def make(records, redact=False, pictures=lambda key: gallery()):
        shown = redact_records(records) if redact else records
        return Page.of(shown, made.plan(), made.VERSIONS, (lambda key: None) if redact else pictures, redact)

    return make


def test_each_defence_has_a_line_of_scores_and_a_grid(page, records):
    section = generated_section(page(records))
    assert [line["defence"] for line in section.values["lines"]] == [
        "no defence",
        "class keys (dimensions 4096)",
        "top-k (share 0.1)",
    ]
    assert section.values["lines"][0]["cells"] == [
        "90 % (90 to 90)",
        "90 % (90 to 90)",
        "90 %",
        "45 %",
        "100 %",
        "0.50 (0.48 to 0.52)",
        "0.51",
        "1.50",
        "0.25",
    ]
    assert [line["tones"][:2] for line in section.values["lines"]] == [["leaks"] * 2, [""] * 2, ["leaks"] * 2]
    assert section.values["lines"][0]["chances"] == ["10 %", "50 %", *[""] * 7]
    assert [grid.detail for grid in section.values["grids"]] == [
        f"GAN; {share} % show the class, {share} % any of the attacked" for share in (90, 0, 80)
    ]


def test_samples_of_another_class_of_the_attacked_are_marked_as_a_leak(page, made):
    shown = made.record(psnr=None, label="GAN", extra=readings(0.0, whichever=0.97), defence=ClassKeys())
    [line] = generated_section(page([shown])).values["lines"]
    assert line["tones"] == ["", "leaks", *[""] * 7]


def test_a_grid_begins_with_private_examples_and_ends_with_the_end(page, records):
    grid = generated_section(page(records)).values["grids"][0]
    assert [strip.name for strip in grid.strips] == [
        "private examples",
        "their mean",
        "round 1",
        "round 5, first recognised",
        "round 9",
        "in the end",
    ]
    assert [strip.owned for strip in grid.strips] == [True, True, False, False, False, False]
    assert all(strip.source.startswith("data:image/png;base64,") for strip in grid.strips)
    assert all(strip.text for strip in grid.strips)


def test_where_nobody_holds_the_class_there_is_no_row_of_private_examples(page, records):
    grid = generated_section(page(records, pictures=lambda key: gallery(owned=0))).values["grids"][0]
    assert grid.strips[0].name == "round 1"


def test_the_first_round_in_which_the_class_was_recognised_is_among_the_many_that_are_shown(page, made):
    rounds = 4 * MOST_ROUNDS
    shares = tuple(float(place >= 6) for place in range(rounds))
    shown = [reading for reading in readings(0.9) if reading.name != "recognised_best"]
    shown.append(Reading(name="recognised_best", value=1.0, n=rounds, each=shares))
    record = made.record(psnr=None, label="GAN", extra=tuple(shown))
    grid = generated_section(page([record], pictures=lambda key: gallery(rounds))).values["grids"][0]
    names = [strip.name for strip in grid.strips]
    assert "round 25, first recognised" in names
    assert sum("first recognised" in name for name in names) == 1
    assert len([name for name in names if name.startswith("round")]) == MOST_ROUNDS + 1


def test_of_many_rounds_some_are_shown_the_first_and_the_last_among_them():
    for count in (1, MOST_ROUNDS, 12, 40):
        places = pick_rounds(count)
        assert len(places) == min(count, MOST_ROUNDS)
        assert (places[0], places[-1]) == (0, count - 1)
        assert places == sorted(set(places))


def test_a_redacted_report_has_the_scores_and_no_picture(page, records, report):
    section = generated_section(page(records, redact=True))
    assert section.values["grids"] == []
    assert section.values["lines"][0]["cells"][0] == "90 % (90 to 90)"
    text = report(records, redact=True, gallery=lambda key: gallery())
    assert "Pictures that the attacker made up" in text
    assert "data:image" not in text
    assert "left out of a redacted report" in text


def test_an_open_report_shows_them_and_says_that_it_is_private(report, records):
    text = report(records, gallery=lambda key: gallery())
    assert text.count("data:image/png") == 3 * 6
    assert "Private." in text


def test_an_audit_without_such_samples_has_no_such_section(page, made):
    assert generated_section(page(made.audit())) is None


@pytest.mark.parametrize("spoilt", ["made", "history", "rounds"])
def test_what_is_no_gallery_of_samples_is_not_drawn(page, records, spoilt):
    partly = {name: tensor for name, tensor in gallery().items() if name != spoilt}
    assert not drawable(partly)
    assert generated_section(page(records, pictures=lambda key: partly)).values["grids"] == []
    two = {**gallery(), "history": torch.zeros(3, 4, 2, 8, 8, dtype=torch.uint8)}
    assert not drawable(two)


def test_estimated_keys_are_told_beside_chance_and_over_the_turns(page, made):
    cosine = Reading(
        name="key_cosine", value=0.44, low=0.41, high=0.46, n=3, chance=0.009, leaks="high", each=(0.1, 0.3, 0.44)
    )
    rows = [
        made.record(psnr=None, label="GAN", extra=(*readings(0.5), cosine), defence=ClassKeys()),
        made.record(psnr=None, label="GAN", extra=readings(0.5), defence=TopK()),
    ]
    section = generated_section(page(rows))
    assert section.values["keys"] == [
        "Class keys (dimensions 4096), GAN: the estimated key has a cosine of 0.44 (0.41 to 0.46) with the nearest "
        "true one, "
        "chance 0.01; over the turns 0.10, 0.30, 0.44."
    ]
