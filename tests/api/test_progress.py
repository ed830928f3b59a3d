"""Progress: a line that changes in place in a notebook, a bar on a terminal, sentences alone elsewhere."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from leaktight.api import progress
from leaktight.api.progress import show_progress
from leaktight.running import Step

STEPS = [Step(1.0, 4, 0, "training with <none>", None), Step(2.0, 4, 0, "analytic against none", None)]


class Handle:
    """A display of a notebook that remembers what it was told."""

    def __init__(self, shown):
        self.shown = shown

    def update(self, bundle, raw):
        assert raw
        self.shown.append(bundle)


@pytest.fixture
def notebook(monkeypatch):
    """Pretend to be the kernel of a notebook; return what it shows."""
    shown = []

    def display(bundle, raw, display_id=False):
        assert raw
        shown.append(bundle)
        return Handle(shown)

    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(progress, "PACE", 0.0)
    return shown


def test_a_notebook_has_one_line_that_changes(notebook):
    with show_progress(True) as watcher:
        for one in STEPS:
            watcher.step(one)
    assert [bundle["text/plain"] for bundle in notebook] == [
        "preparing",
        "1 of 4, training with <none>",
        "2 of 4, analytic against none",
        "The audit is done.",
    ]
    assert notebook[1]["text/html"].startswith('<progress value="1.00" max="4">')
    assert "&lt;none&gt;" in notebook[1]["text/html"]


def test_a_notebook_keeps_what_is_said(notebook):
    with show_progress(True) as watcher:
        watcher.say("First answer: <none>.")
        watcher.step(STEPS[0])
    assert notebook[1] == {"text/plain": "First answer: <none>.", "text/html": "<p>First answer: &lt;none&gt;.</p>"}


def test_a_notebook_is_not_flooded(notebook, monkeypatch):
    monkeypatch.setattr(progress, "PACE", 3600.0)
    with show_progress(True) as watcher:
        for _ in range(100):
            watcher.step(STEPS[0])
    assert len(notebook) <= 3


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(config={})))
    with show_progress(True) as watcher:
        assert watcher.step is None


def test_a_terminal_has_a_bar_that_is_cleared_away(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=written, force_terminal=True, width=100))
    with show_progress(True) as watcher:
        for one in STEPS:
            watcher.step(one)
        watcher.say("First answer: [none].")
    assert "First answer: [none].\n" in written.getvalue()
    assert "analytic against none" in written.getvalue()
    assert "2/4" in written.getvalue()


def test_a_file_holds_sentences_and_no_bar(capsys):
    with show_progress(True) as watcher:
        assert watcher.step is None
        watcher.say("First answer.")
    assert capsys.readouterr() == ("", "First answer.\n")


def test_nobody_watches(capsys):
    with show_progress(False) as watcher:
        assert watcher == (None, None)
    assert capsys.readouterr() == ("", "")


def test_a_function_of_ones_own_is_told():
    told = []
    with show_progress(told.append) as watcher:
        watcher.step(STEPS[0])
        assert watcher.say is None
    assert told == STEPS[:1]
