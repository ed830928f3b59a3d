import dataclasses

import pytest

from leaktight.findings.summary import summarise
from leaktight.report.page import Page
from leaktight.report.regions import MOST, pairs_of


@pytest.fixture
def page(made):
    def make(records, redact=False, gallery=None):
        return Page.of(records, made.plan(), made.VERSIONS, gallery or made.gallery(records), redact)

    return make


def test_each_region_shows_its_closest_copies_with_ratio_and_error(made, page):
    found = page(made.sweep())
    pairs = pairs_of(found.summary.curves, found)
    assert list(pairs) == ["green", "white", "red"]
    assert all(len(shown) == MOST for shown in pairs.values())
    # Eight copies lie around each error; the closest of them is 30 % below it.
    assert pairs["red"][0].copy.caption == "ratio 50, error 0.07"
    assert pairs["green"][0].copy.caption == "ratio 0.5, error 0.7"
    assert all(pair.copy.source.startswith("data:image/png") for shown in pairs.values() for pair in shown)
    assert "Gaussian noise (std 0.01)" in pairs["green"][0].copy.text


def test_no_defence_fills_a_region_alone(made, page):
    found = page(made.sweep())
    names = [pair.name for pair in pairs_of(found.summary.curves, found)["red"]]
    assert {"Gaussian noise (std 0.0001)", "top-k (share 0.3)"} <= set(names)


def test_a_copy_stands_in_the_region_of_its_own_message(made, page):
    records = made.sweep()
    mixed = tuple(
        r.model_copy(update={"each": (0.1, *r.each[1:])}) if r.name == "gradient_ratio" else r
        for r in records[1].readings
    )
    records[1] = records[1].model_copy(update={"readings": mixed})
    found = page(records)
    assert any(pair.copy.caption.startswith("ratio 0.1,") for pair in pairs_of(found.summary.curves, found)["green"])


def test_batches_share_their_messages_ratio(made, page):
    records = made.sweep(batch_size=4, victims=2)
    each = tuple(
        r.model_copy(update={"each": (50.0, 5.0)}) if r.name == "gradient_ratio" else r for r in records[1].readings
    )
    found = page([records[1].model_copy(update={"readings": each}), *records[2:4]])
    pairs = pairs_of(found.summary.curves, found)
    assert [pair.copy.caption.split(",")[0] for pair in pairs["red"]] == ["ratio 50"] * MOST
    assert {pair.copy.caption.split(",")[0] for pair in pairs["white"]} == {"ratio 5"}


def test_a_redacted_page_has_none(made, page):
    found = page(made.sweep(), redact=True)
    assert pairs_of(found.summary.curves, found) == {}


def test_without_images_or_ratios_nothing_is_shown(made, page):
    found = page(made.sweep(), gallery=lambda key: None)
    assert pairs_of(found.summary.curves, found) == {}
    curves = summarise(made.sweep()).curves
    plain = [
        r.model_copy(update={"readings": tuple(x for x in r.readings if x.name != "gradient_ratio")})
        for r in made.sweep()
    ]
    assert pairs_of(curves, page(plain)) == {}
    assert pairs_of((), found) == {}
    assert pairs_of([dataclasses.replace(curves[0], spots=())], page(made.sweep())) == {}
