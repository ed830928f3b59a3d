"""The report in a real browser: drawn, quiet, and alone with itself."""

import http.server
import os
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest
from PIL import Image

from leaktight.attacks import PropertyInference
from leaktight.core.metric import Reading
from leaktight.defences import SumKL, TopK
from leaktight.findings.audit_comparison import Audit, compare
from leaktight.findings.summary import summarise
from leaktight.metrics.norm_histogram import BINS
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
def test_every_plot_is_drawn_and_the_console_is_silent(browse, site, name):
    result = browse((site / name).as_uri(), "--dump-dom")
    shown = result.stdout.split('id="plots"')[0]
    plots = re.findall(r'<div id="plot-[^"]*"[^>]*class="[^"]*js-plotly-plot', shown)
    assert len(plots) == 4
    assert shown.count('class="main-svg"') >= 4
    assert "images recognised" in shown
    assert console(result) == []


def test_characteristics_are_drawn_with_both_axes_and_fit_a_phone(browse, site, report, made):
    page = site / "swept.html"
    page.write_text(report(made.sweep()))
    result = browse(page.as_uri(), "--dump-dom")
    shown = result.stdout.split('id="plots"')[0]
    drawn = re.findall(r'<div id="plot-curve-[^"]*"[^>]*class="[^"]*js-plotly-plot', shown)
    assert len(drawn) == 2
    assert shown.count(">not traced<") == 2
    assert console(result) == []
    frame = site / "swept-phone.html"
    frame.write_text(
        '<body style="margin:0"><iframe src="swept.html" style="width:390px;height:6000px;border:0"></iframe>'
    )
    pixels = picture(browse, frame, site / "swept-phone.png", 700, 6000)
    assert pixels[:, 395:].std() == 0
    assert pixels[:, :390].std() > 10


def test_labels_over_training_are_drawn_and_fit_a_phone(browse, site, report, made):
    def told(value):
        each = tuple(value + 0.01 * (step % 2) for step in range(20))
        counts = tuple(float(place in (40, 60)) for place in range(BINS))
        leak = {"value": value, "low": value - 0.02, "high": value + 0.02, "chance": 0.5, "leaks": "high", "n": 20}
        layers = [Reading(name="leak_auc", layer=layer, each=each, **leak) for layer in (None, "linear1")]
        norms = [Reading(name=f"norm_{label}", value=1.0, n=20, each=counts) for label in ("negative", "positive")]
        return (*layers, *norms, Reading(name="auc", value=0.9, low=0.88, high=0.92, chance=0.5))

    defended = [
        made.record(SumKL(bound=bound), psnr=None, accuracy=None, extra=told(1 - bound)) for bound in (0.1, 0.2, 0.4)
    ]
    page = site / "labels.html"
    page.write_text(
        report([made.record(psnr=None, accuracy=None, extra=told(0.97)), *defended], gallery=lambda key: None)
    )
    result = browse(page.as_uri(), "--dump-dom")
    shown = result.stdout.split('id="plots"')[0]
    for name, count in (("labels", 2), ("norms", 4)):
        assert len(re.findall(rf'<div id="plot-{name}-[^"]*"[^>]*class="[^"]*js-plotly-plot', shown)) == count
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

    def told(most):
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
        made.record(TopK(share=share), psnr=None, attack=attack, extra=told(0.5 + share / 2)) for share in (0.6, 0.2)
    ]
    page = site / "layers.html"
    page.write_text(
        report([made.record(psnr=None, attack=attack, extra=told(0.93)), *defended], gallery=lambda key: None)
    )
    result = browse(page.as_uri(), "--dump-dom")
    shown = result.stdout.split('id="plots"')[0]
    assert len(re.findall(r'<div id="plot-layers-[^"]*"[^>]*class="[^"]*js-plotly-plot', shown)) == 3
    assert shown.count(">mutual inf.<") == 3
    assert shown.count(">linear2<") == 3
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
    assert "main-svg" in result.stdout
    assert not [line for line in console(result) if "favicon" not in line]


def picture(browse, page, file, width, height):
    browse(page.as_uri(), f"--window-size={width},{height}", f"--screenshot={file}")
    return np.asarray(Image.open(file).convert("RGB")).astype(int)


def test_the_page_is_not_blank(browse, site):
    pixels = picture(browse, site / "report.html", site / "report.png", 1200, 4800)
    assert pixels.shape == (4800, 1200, 3)
    assert pixels.std() > 10
    assert len(np.unique(pixels @ [65536, 256, 1])) > 2000


def test_nothing_sticks_out_on_a_phone(browse, site):
    pixels = picture(browse, site / "phone.html", site / "phone.png", 700, 3000)
    assert pixels[:, 395:].std() == 0
    probe = site / "wide.html"
    script = "document.title = 'wide ' + document.getElementById('f').contentDocument.documentElement.scrollWidth"
    frame = f'<iframe id="f" src="report.html" style="width:390px;height:900px" onload="setTimeout(() => {{ {script} }}, 3000)"></iframe>'
    probe.write_text(f"<title></title>{frame}")
    result = browse(probe.as_uri(), "--allow-file-access-from-files", "--dump-dom")
    assert int(re.search(r"<title>wide (\d+)", result.stdout)[1]) <= 394


def test_it_prints_with_everything_unfolded(browse, site):
    browse((site / "report.html").as_uri(), f"--print-to-pdf={site / 'report.pdf'}", "--no-pdf-header-footer")
    content = (site / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 10


def test_a_comparison_fits_a_phone_and_is_silent(browse, site, made):
    top = TopK(share=0.3)
    sides = [made.record(psnr=38), made.record(top, 31)], [made.record(psnr=38), *made.two_principles(top)]
    audits = [
        Audit(letter, f"a/very/long/{'path' * 20}/{letter}", made.plan(), tuple(records), {}, {}, summarise(records))
        for letter, records in zip("AB", sides, strict=True)
    ]
    (site / "compare.html").write_text(render_comparison(compare(audits)))
    assert console(browse((site / "compare.html").as_uri(), "--dump-dom")) == []
    frame = '<body style="margin:0"><iframe src="compare.html" style="width:390px;height:2000px;border:0"></iframe>'
    (site / "compare-phone.html").write_text(frame)
    pixels = picture(browse, site / "compare-phone.html", site / "compare-phone.png", 700, 2000)
    assert pixels[:, 395:].std() == 0
    assert pixels[:, :390].std() > 10
