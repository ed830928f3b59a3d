import base64
import hashlib
import html.parser
import re
import stat
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.probe import Attempt
from leaktight.core.record import Record, Status
from leaktight.data import Photos
from leaktight.defences import GaussianNoise, TopK
from leaktight.learning.federated import Federated
from leaktight.metrics import standard
from leaktight.models import DLNet
from leaktight.plans.plan import Grid, Plan
from leaktight.report import render as render_page
from leaktight.report import write_report
from leaktight.report.page import Section
from leaktight.running.gallery import encode
from leaktight.running.store import Store

FOLDER = Path(render_page.__globals__["__file__"]).parent
VOID = {"meta", "img", "br", "link", "input"}


class Reader(html.parser.HTMLParser):
    """Collects what a browser would load, run and show, and checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.links, self.anchors, self.scripts, self.words = [], [], [], set(), [], []
        self.wrong = []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found["id"]} if "id" in found else set()
        self.loads += [found[name] for name in ("src", "srcset", "data", "poster", "action") if found.get(name)]
        if "href" in found:
            (self.links if tag == "a" else self.loads).append(found["href"])
        if tag not in VOID:
            self.open.append((tag, found))

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop()[0] != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        tag, found = self.open[-1] if self.open else ("", {})
        if tag == "script":
            self.scripts.append((found.get("type"), data))
        elif tag != "style":
            self.words.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


@pytest.fixture(scope="session")
def page(whole):
    return read(whole)


def words(page):
    return re.sub(r"\s+", " ", " ".join(page.words).replace("\u00a0", " "))


def test_the_markup_is_closed(page):
    assert page.wrong == []
    assert page.open == []


def test_nothing_is_loaded_from_anywhere(page, whole):
    assert all(load.startswith("data:image/png;base64,") for load in page.loads)
    assert not re.search(r"@import|url\(", whole.split("</style>")[0])
    assert all(link.startswith(("#", "data:text/csv")) for link in page.links)


def test_every_link_leads_somewhere(page):
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.anchors


def test_the_browser_is_told_to_run_these_scripts_and_no_other(page, whole):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', whole)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.split("style-src")[0]
    run = [text for kind, text in page.scripts if kind is None]
    assert len(run) == 1
    for text in run:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


def test_a_page_is_small(whole, passable, report, made):
    assert len(passable) < 250_000
    pictures = sum(map(len, re.findall(r'src="data:image[^"]*"', whole)))
    assert len(whole) - pictures < 250_000
    assert len(report([made.control()])) < 100_000


@pytest.mark.parametrize(
    "title", ["summary", "advice", "pictures", "trade-off", "table", "doubts", "checks", "threat", "parameters"]
)
def test_each_part_is_there(page, title):
    assert title in page.anchors


def test_the_words_of_the_verdict_are_on_the_page(page):
    text = words(page)
    assert "Without a defence, all 8 images can be recognised from one shared message." in text
    assert "No defence leaks all 8 guessing 0 % dlg2019" in text
    assert "Why No defence: leaks All 8 images can be recognised from one shared message" in text
    assert (
        "The best protection measured is Gaussian noise (std 0.001): reduced; 3 of 8 images can be recognised" in text
    )
    assert "the server: it follows the protocol and reads every message" in text
    assert "An image counts as recognised when the attacker's copy has a PSNR of at least 20 dB." in text


def test_every_setting_version_and_seed_is_on_the_page(page, made):
    text = words(page)
    for expected in (
        "model.activation",
        "sigmoid",
        "multiplier",
        "attack.descent.learning_rate",
        "torch",
        "2.13.0",
        "Seeds: 0",
    ):
        assert expected in text
    for record in made.audit():
        assert f"cell-{record.cell.key}" in page.anchors


def test_refusals_and_failures_are_shown_with_their_reason(page):
    assert "dlg2019 needs one label per image." in words(page)
    assert "RuntimeError: image [0.1, 0.7] is odd." in words(page)


def test_cells_that_were_not_reached_are_counted(report, made):
    plan = made.plan(seeds=(0, 1, 2))
    text = words(read(report(plan=plan)))
    assert "4 planned cells not measured yet." in text


def test_it_warns_of_private_images(page):
    assert "Private. This file shows images of the people behind the data." in words(page)


def test_the_same_records_give_the_same_page(whole, report):
    assert report() == whole


def test_an_empty_audit_has_a_page(report):
    text = words(read(report([])))
    assert "Nothing was measured, so nothing can be said." in text
    assert "no control cell" in text


ATTACK = '<script>alert("x")</script>'


def test_what_a_user_wrote_is_text_and_never_markup(report, made):
    scenario = made.Handmade.model_construct(
        kind="handmade", data={"names": [ATTACK, "</script>" + ATTACK], ATTACK: ATTACK}
    )
    records = [
        made.record(label=ATTACK, scenario=scenario, notes={ATTACK: 1.0}),
        made.record(TopK(), psnr=9, label=ATTACK, scenario=scenario),
        made.record(TopK(share=0.2), status=Status.FAILED, reason=ATTACK, label=ATTACK, scenario=scenario),
        made.null(psnr=30, label=ATTACK),
    ]
    text = report(records, plan=made.plan(title=ATTACK), versions={"leaktight": ATTACK, ATTACK: ATTACK})
    assert "<script>alert" not in text
    page = read(text)
    assert [kind for kind, _ in page.scripts] == [None]
    assert page.wrong == []
    assert ATTACK in words(page)


class TestRedacted:
    def test_it_says_so(self, passable):
        text = words(read(passable))
        assert "Redacted. This copy holds no image, no value of a single image and no seed." in text
        assert "Private." not in text

    def test_it_has_no_picture_and_never_asks_for_one(self, passable, report):
        assert "data:image" not in passable
        assert "<img" not in passable

        def forbidden(key):
            raise AssertionError("a redacted report must not open a picture")

        report(redact=True, gallery=forbidden)

    def test_it_keeps_the_verdict_and_drops_places_and_error_texts(self, passable, whole):
        assert "patients/anna/photos.npz" in whole
        assert "anna" not in passable
        assert "patients" not in passable
        assert "photos.npz" not in passable
        assert "[0.1, 0.7]" not in passable
        assert "withheld in a redacted report" in passable
        assert "All 8 images can be recognised" in words(read(passable))

    def test_it_has_no_value_of_one_image(self, report, made):
        each = (12.345, 23.456, 34.567, 45.678)
        single = made.record(
            TopK(), psnr=None, extra=(made.Reading(name="odd", value=56.789, n=1, leaks="high", each=(56.789,)),)
        )
        pooled = made.record(psnr=None, extra=(made.Reading(name="even", value=29.0, n=4, leaks="high", each=each),))
        text = report([pooled, single], redact=True)
        assert not any(f"{value:.1f}" in words(read(text)) for value in (*each, 56.789))
        assert "29" in words(read(text))


class TestWrite:
    """A real store on disk, with a real plan and readings made by hand."""

    @pytest.fixture
    def folder(self, tmp_path, made):
        defences = (TopK(share=0.1), GaussianNoise(std=0.1))
        probe = Attempt(attack=made.DLG, metrics=standard())
        scenario = Federated(data=Photos(), model=DLNet(), rounds=3)
        plan = Plan(
            title="Stored",
            scenarios={"1": scenario},
            defences=defences,
            probes={"dlg2019": probe},
            grid=Grid(victims=8),
        )
        psnr = {"none": 38.0, "top_k": 19.0, "gaussian_noise": 9.0}
        with Store.create(tmp_path) as store:
            store.begin(plan)
            for cell in plan.cells():
                quality = {"control": 100.0, "null": 6.0}.get(cell.purpose, psnr[cell.defence.kind])
                record = Record(cell=cell, status=Status.DONE, readings=tuple(made.image_readings(quality)))
                store.write(record, encode(made.gallery([record])(cell.key)))
        return tmp_path

    def test_what_was_stored_is_what_is_shown(self, folder):
        page = read(write_report(folder).read_text())
        assert "No defence leaks all 8 guessing" in words(page)
        assert "Top-k (share 0.1) reduced 3 of 8 guessing" in words(page)
        assert "Gaussian noise (std 0.1) unknown none of 8 guessing" in words(page)
        assert len(page.loads) == 4 * 8
        assert "not measured yet" not in words(page)

    def test_only_its_owner_can_read_it_whatever_was_there_before(self, folder):
        (folder / "report.html").write_text("old")
        (folder / "report.html").chmod(0o644)
        path = write_report(folder)
        assert path == folder / "report.html"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "data:image" in path.read_text()
        assert {file.name for file in folder.glob("*report*")} == {"report.html", "report-1.html"}
        assert (folder / "report-1.html").read_text() == "old"

    def test_a_redacted_one_stands_beside_it(self, folder):
        path = write_report(folder, redact=True)
        assert path.name == "report-redacted.html"
        assert "data:image" not in path.read_text()

    def test_another_place_can_be_named(self, folder):
        assert write_report(folder, folder / "deep" / "mine.html") == folder / "deep" / "mine.html"

    def test_a_place_that_cannot_be_written_is_one_sentence(self, folder):
        (folder / "file").write_text("")
        with pytest.raises(LeaktightError, match="cannot be made"):
            write_report(folder, folder / "file" / "report.html")


def test_a_folder_without_audit_is_one_sentence(tmp_path):
    with pytest.raises(InvalidValue, match="There is no audit in"):
        write_report(tmp_path)


def test_a_new_part_is_a_function_and_a_template(report, monkeypatch):
    def counted(page):
        return Section(
            "extra",
            "Something new",
            "flags.html",
            {"flags": (), "counts": {"done": 0, "refused": 0, "failed": 0}, "missing": 0},
        )

    details = render_page.__globals__["DETAILS"]
    monkeypatch.setitem(render_page.__globals__, "DETAILS", (*details, counted, lambda page: None))
    page = read(report([]))
    assert "extra" in page.anchors
    assert "#extra" in page.links
    assert "Something new" in words(page)


def test_numbers_stay_with_their_units(whole):
    assert "38\u00a0dB" in whole
    assert "95\u00a0%" in whole


def test_the_page_can_be_read_without_scripts(whole):
    bare = re.sub(r"<script.*?</script>", "", whole, flags=re.DOTALL)
    assert "38.0 (36.5 to 39.5)" in bare
    assert bare.count("<svg viewBox") == 4


def test_pictures_have_words_for_those_who_cannot_see_them(whole):
    images = re.findall(r"<img [^>]*>", whole)
    assert len(images) == 9 * 8
    assert all(re.search(r'alt="Image \d, [^"]+"', image) for image in images)


def test_the_template_stays_small():
    assert sum(len(path.read_text().splitlines()) for path in FOLDER.glob("*.html")) < 550


def test_searches_that_failed_stand_beside_the_attack_and_are_explained(report, made):
    records = [made.record(psnr=38), made.record(TopK(), psnr=9, extra=made.searches(8))]
    shown = words(read(report(records)))
    assert "all 8 (the truth fits better)" in shown
    assert "Every search failed, so this says nothing about the defence" in shown
    assert "A failed search says nothing about a defence." in shown
    assert "objective of the truth" in shown
    assert "A failed search says nothing" not in words(read(report(records[:1])))
