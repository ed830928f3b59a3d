"""The report in a real browser: drawn, quiet, and alone with itself."""

import http.server
import json
import os
import re
import shutil
import subprocess
import threading

import numpy as np
import pypdf
import pytest
import torch
from PIL import Image

from leaktight.attacks import PropertyInference
from leaktight.captures import AsCaptured
from leaktight.core.metric import Reading
from leaktight.defences import ClassKeys, SumKL, TopK
from leaktight.findings.audit_comparison import Audit, compare
from leaktight.findings.summary import summarise
from leaktight.metrics.norm_histogram import BINS
from leaktight.papers.check import above
from leaktight.papers.page import render_page
from leaktight.papers.paper import Experiment, Paper
from leaktight.papers.reproduction import Reproduction
from leaktight.report.compare import render_comparison

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    # In CI a browser that is missing is a fault, not a reason to look away.
    pytest.mark.skipif(BROWSER is None and os.environ.get("CI") != "true", reason="Chromium is not installed"),
]
QUIET = (
    "--headless --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update"
)
QUIET += (
    " --disable-sync --disable-dev-shm-usage --hide-scrollbars --virtual-time-budget=8000 --enable-logging=stderr --v=0"
)


@pytest.fixture
def browse(tmp_path):
    def run(page, *options):
        # The sandbox needs rights that the root user of a container does not have.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [BROWSER, *QUIET.split(), *sandbox, f"--user-data-dir={tmp_path / 'profile'}", *options, str(page)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    return run


@pytest.fixture
def site(tmp_path, whole, passable):
    (tmp_path / "report.html").write_text(whole)
    (tmp_path / "redacted.html").write_text(passable)
    frame = '<body style="margin:0"><iframe src="report.html" style="width:390px;height:3000px;border:0"></iframe>'
    (tmp_path / "phone.html").write_text(frame)
    return tmp_path


def console(result):
    return re.findall(r"CONSOLE.*", result.stderr)


@pytest.mark.parametrize("name", ["report.html", "redacted.html"])
def test_every_chart_is_drawn_and_the_console_is_silent(browse, site, name):
    result = browse((site / name).as_uri(), "--dump-dom")
    assert len(re.findall(r'<figure id="plot-', result.stdout)) == 3
    assert "images recognised" in result.stdout
    assert 'class="sorter"' in result.stdout
    assert console(result) == []


def test_characteristics_are_drawn_and_fit_a_phone(browse, site, report, made):
    page = site / "swept.html"
    page.write_text(report(made.sweep()))
    result = browse(page.as_uri(), "--dump-dom")
    assert len(re.findall(r'<figure id="plot-curve-', result.stdout)) == 2
    assert result.stdout.count(">not traced<") == 2
    assert console(result) == []
    frame = site / "swept-phone.html"
    frame.write_text(
        '<body style="margin:0"><iframe src="swept.html" style="width:390px;height:6000px;border:0"></iframe>'
    )
    pixels = picture(browse, frame, site / "swept-phone.png", 700, 6000)
    assert pixels[:, 395:].std() == 0
    assert pixels[:, :390].std() > 10


def test_labels_over_training_are_drawn_and_fit_a_phone(browse, site, report, made):
    def readings_of(value):
        each = tuple(value + 0.01 * (step % 2) for step in range(20))
        counts = tuple(float(place in (40, 60)) for place in range(BINS))
        leak = {"value": value, "low": value - 0.02, "high": value + 0.02, "chance": 0.5, "leaks": "high", "n": 20}
        layers = [Reading(name="leak_auc", layer=layer, each=each, **leak) for layer in (None, "linear1")]
        norms = [Reading(name=f"norm_{label}", value=1.0, n=20, each=counts) for label in ("negative", "positive")]
        return (*layers, *norms, Reading(name="auc", value=0.9, low=0.88, high=0.92, chance=0.5))

    defended = [
        made.record(SumKL(bound=bound), psnr=None, accuracy=None, extra=readings_of(1 - bound))
        for bound in (0.1, 0.2, 0.4)
    ]
    page = site / "labels.html"
    page.write_text(
        report([made.record(psnr=None, accuracy=None, extra=readings_of(0.97)), *defended], gallery=lambda key: None)
    )
    result = browse(page.as_uri(), "--dump-dom")
    for name, count in (("labels", 1), ("norms", 4)):
        assert len(re.findall(rf'<figure id="plot-{name}-', result.stdout)) == count
    assert console(result) == []
    frame = site / "labels-phone.html"
    frame.write_text(
        '<body style="margin:0"><iframe src="labels.html" style="width:390px;height:6000px;border:0"></iframe>'
    )
    pixels = picture(browse, frame, site / "labels-phone.png", 700, 6000)
    assert pixels[:, 395:].std() == 0
    assert pixels[:, :390].std() > 10


def test_layers_are_drawn_and_fit_a_phone(browse, site, report, made):
    layers = [*(f"body.conv{number}" for number in range(1, 9)), "body.linear1", "body.linear2", "head"]
    measures = ("property_auc", "v_information_share", "sensitivity_f_share", "mutual_information_upper_share")

    def readings_of(most):
        common = {"n": 40, "leaks": "high"}
        found = [Reading(name="property_auc", value=most, low=most - 0.05, high=most + 0.05, chance=0.5, **common)]
        for name in measures:
            for number, layer in enumerate(layers):
                value = 0.5 + (most - 0.5) * number / len(layers)
                found.append(
                    Reading(
                        name=name, value=value, low=value - 0.05, high=value + 0.05, layer=layer, chance=0.5, **common
                    )
                )
        return tuple(found)

    attack = PropertyInference(layers="each")
    defended = [
        made.record(TopK(share=share), psnr=None, attack=attack, extra=readings_of(0.5 + share / 2))
        for share in (0.6, 0.2)
    ]
    page = site / "layers.html"
    page.write_text(
        report([made.record(psnr=None, attack=attack, extra=readings_of(0.93)), *defended], gallery=lambda key: None)
    )
    result = browse(page.as_uri(), "--dump-dom")
    assert len(re.findall(r'<figure id="plot-layers-', result.stdout)) == 3
    # The wide chart is drawn for a desk and for a phone.
    assert result.stdout.count(">linear2<") == 4
    assert console(result) == []
    frame = site / "layers-phone.html"
    frame.write_text(
        '<body style="margin:0"><iframe src="layers.html" style="width:390px;height:6000px;border:0"></iframe>'
    )
    pixels = picture(browse, frame, site / "layers-phone.png", 700, 6000)
    assert pixels[:, 395:].std() == 0
    assert pixels[:, :390].std() > 10


def test_a_script_that_slipped_in_would_not_run(browse, site, whole):
    page = site / "spoilt.html"
    page.write_text(whole.replace("<header>", "<header><script>document.title = 'taken over'</script>"))
    result = browse(page.as_uri(), "--dump-dom")
    assert "<title>taken over" not in result.stdout
    assert any("Content Security Policy" in line for line in console(result))


def test_the_page_asks_for_nothing(browse, site):
    asked = []

    class Server(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(site))

        def log_message(self, text, *values):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # Every name but the server's own is unknown here, so a request elsewhere fails and says so.
        result = browse(
            f"http://127.0.0.1:{server.server_port}/report.html",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--dump-dom",
        )
        server.shutdown()
    assert set(asked) <= {"/report.html", "/favicon.ico"}
    assert "<figure id=" in result.stdout
    assert not [line for line in console(result) if "favicon" not in line]


def picture(browse, page, file, width, height):
    browse(page.as_uri(), f"--window-size={width},{height}", f"--screenshot={file}")
    return np.asarray(Image.open(file).convert("RGB")).astype(int)


def test_the_page_is_not_blank(browse, site):
    pixels = picture(browse, site / "report.html", site / "report.png", 1200, 4800)
    assert pixels.shape == (4800, 1200, 3)
    assert pixels.std() > 10
    assert len(np.unique(pixels @ [65536, 256, 1])) > 1000


def test_nothing_sticks_out_on_a_phone(browse, site):
    pixels = picture(browse, site / "phone.html", site / "phone.png", 700, 3000)
    assert pixels[:, 395:].std() == 0
    probe = site / "wide.html"
    script = "document.title = 'wide ' + document.getElementById('f').contentDocument.documentElement.scrollWidth"
    frame = f'<iframe id="f" src="report.html" style="width:390px;height:900px" onload="setTimeout(() => {{ {script} }}, 3000)"></iframe>'
    probe.write_text(f"<title></title>{frame}")
    result = browse(probe.as_uri(), "--allow-file-access-from-files", "--dump-dom")
    assert int(re.search(r"<title>wide (\d+)", result.stdout)[1]) <= 394


def test_it_prints_the_summary_first_and_leaves_parameters_out(browse, site):
    browse((site / "report.html").as_uri(), f"--print-to-pdf={site / 'report.pdf'}", "--no-pdf-header-footer")
    reader = pypdf.PdfReader(site / "report.pdf")
    pages = [page.extract_text() for page in reader.pages]
    assert 4 <= len(pages) <= 12
    # The summary is a page of its own, and what the verdicts rest on comes after it.
    assert "Without a defence" in pages[0]
    assert "What each verdict rests on" not in pages[0]
    whole = "\n".join(pages)
    assert "What each verdict rests on" in whole
    assert "All 20 cells" not in whole
    # The widest table has pages of its own, laid across.
    across = [page.mediabox.width > page.mediabox.height for page in reader.pages]
    first = next(number for number, text in enumerate(pages) if text.startswith("Every number"))
    assert across[first]
    assert across.index(True) == first
    assert not across[-1]


def script(page, text):
    """Return a page that runs a script of ours too, which its own rules would not let it."""
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    return open_page.replace("</body>", f"<script>{text}</script></body>")


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["whole", "passable", "swept", "few"])
def test_nothing_keeps_anyone_from_reading_it(browse, site, report, made, whole, passable, name, scheme):
    """axe-core, the checker of accessibility, has no serious finding."""
    axe = pytest.importorskip("axe_core_python.base").AXE_SCRIPT
    pages = {"whole": lambda: whole, "passable": lambda: passable, "swept": lambda: report(made.sweep())}
    page = pages[name]() if name in pages else report([made.record(psnr=None), made.control()])
    told = "document.title = 'axe ' + JSON.stringify(r.violations.map(v => [v.impact, v.id]))"
    (site / "axe.html").write_text(script(page, f"{axe};axe.run(document).then(r => {{ {told} }})"))
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    result = browse((site / "axe.html").as_uri(), *dark, "--window-size=1200,900", "--dump-dom")
    found = json.loads(re.search(r"<title>axe (.*?)</title>", result.stdout)[1])
    assert found == []


def test_tables_sort_and_pictures_enlarge_by_keyboard(browse, site, whole):
    probe = """
    const table = document.querySelector("table.verdicts");
    const names = () => [...table.tBodies].map((body) => body.rows[0].cells[0].firstChild.textContent);
    const before = names();
    const [heading] = table.tHead.rows[0].cells;
    heading.querySelector("button").focus();
    document.activeElement.click();
    const rising = [names(), heading.getAttribute("aria-sort")];
    document.activeElement.click();
    const falling = [names(), heading.getAttribute("aria-sort")];
    document.querySelector("main .zoom").click();
    const open = document.querySelector("dialog").open;
    const large = document.querySelector("dialog img").width;
    document.title = JSON.stringify([before, rising, falling, open, large]);
    """
    (site / "keys.html").write_text(script(whole, probe))
    result = browse((site / "keys.html").as_uri(), "--window-size=1200,900", "--dump-dom")
    before, rising, falling, opened, large = json.loads(re.search(r"<title>(\[.*?\])</title>", result.stdout)[1])
    assert before[0] == "No defence"
    assert (rising[0], rising[1]) == (sorted(before), "ascending")
    assert (falling[0], falling[1]) == (sorted(before, reverse=True), "descending")
    assert opened
    assert large > 300


@pytest.fixture
def other_pages(made, report, pictured):
    """Pages beside that of an audit of images, each at its fullest."""
    made_up = pictured()
    left = (Reading(name="objective", value=1e-9, n=8, each=(1e-9,) * 8), Reading(name="diverged", value=0, n=8))
    blind = [made.record(AsCaptured(), psnr=None, accuracy=None, extra=left)]
    guesses = {"guess": made.photos(), "guess_labels": torch.arange(8)}
    audits = [made.audit(), [made.record(psnr=38), *made.two_principles(TopK(share=0.3), accuracy=0.75)]]
    told = [
        Audit(letter, f"out/{letter}", made.plan(), tuple(one), made.VERSIONS, {}, summarise(one))
        for letter, one in zip("AB", audits, strict=True)
    ]
    rows = [
        {"defence": name, "strength": strength, "auc": 0.5 + strength / 10, "auc_low": 0.4, "auc_high": 0.9}
        for name in ("none", "noise with a long name")
        for strength in (0.1, 1.0, 2.0)
    ]
    paper = Paper(
        name="some-paper",
        title="A paper (Somebody 2020)",
        setup=lambda order: None,
        experiments=(Experiment(table="trade_off", keys=("defence", "strength"), rows=lambda setup, records: rows),),
    )
    done = Reproduction(
        paper="some-paper",
        scale="smoke",
        seed=0,
        seconds=1.0,
        tables={"trade_off": rows},
        published={"trade_off": [{"defence": "none", "strength": 1.0, "auc": 0.65}]},
        checks=(above("AUC falls", 0.4, 0.0), above("AUC is 1", 0.5, 1.0)),
    )
    return {
        "made up": made_up,
        "captured": report(blind, gallery=lambda key: guesses),
        "compared": render_comparison(compare(told)),
        "reproduced": render_page(paper, done, ["first"]),
    }


@pytest.fixture
def pictured(made, report):
    """Return a maker of a page with made-up pictures over many rounds."""

    def make():
        shares = {"recognised": 0.9, "recognised_any": 1.0, "recognised_confidence": 0.9, "nearest_private": 0.5}
        extra = tuple(
            Reading(name=name, value=value, low=value, high=value, n=60, chance=0.1, leaks="high")
            for name, value in shares.items()
        )
        records = [made.record(defence, psnr=None, label="GAN", extra=extra) for defence in (None, ClassKeys(), TopK())]
        images = torch.zeros(7, 8, 1, 8, 8, dtype=torch.uint8)
        gallery = {"owned": images[0], "made": images[-1], "history": images, "rounds": torch.arange(7)}
        return report(records, gallery=lambda key: gallery)

    return make


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_anyone_from_reading_any_other_page(browse, site, other_pages, scheme):
    axe = pytest.importorskip("axe_core_python.base").AXE_SCRIPT
    told = "document.title = 'axe ' + JSON.stringify(r.violations.map(v => [v.impact, v.id]))"
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    found = {}
    for name, page in other_pages.items():
        (site / "axe.html").write_text(script(page, f"{axe};axe.run(document).then(r => {{ {told} }})"))
        result = browse((site / "axe.html").as_uri(), *dark, "--window-size=1200,900", "--dump-dom")
        found[name] = json.loads(re.search(r"<title>axe (.*?)</title>", result.stdout)[1])
    assert found == {name: [] for name in other_pages}


@pytest.mark.long
def test_no_other_page_sticks_out_on_a_phone(browse, site, other_pages):
    wide = {}
    for name, page in other_pages.items():
        (site / "other.html").write_text(page)
        told = "document.title = 'wide ' + document.getElementById('f').contentDocument.documentElement.scrollWidth"
        frame = f'<iframe id="f" src="other.html" style="width:390px;height:900px" onload="setTimeout(() => {{ {told} }}, 1000)"></iframe>'
        (site / "frame.html").write_text(f"<title></title>{frame}")
        result = browse((site / "frame.html").as_uri(), "--allow-file-access-from-files", "--dump-dom")
        wide[name] = int(re.search(r"<title>wide (\d+)", result.stdout)[1])
    assert max(wide.values()) <= 394, wide
