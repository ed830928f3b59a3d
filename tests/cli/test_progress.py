"""Progress: a bar on a terminal, lines without one, nothing where nobody wants it."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from leaktight.cli.plan_title import title_of_plan
from leaktight.cli.progress import SILENCE, Bar, peak_memory
from leaktight.core.record import Status
from leaktight.plans import quick, standard
from leaktight.running import Step
from leaktight.running.forecast import Estimate

CELL = "dlg2019 against none, batch 1, [end]"


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def screen(terminal: bool = True, width: int = 200) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=width, color_system=None), text


def test_the_bar_shows_how_far_how_fast_and_how_long() -> None:
    console, text = screen(width=80)
    clock = Clock()
    long = "strongest against Chain(links=(GaussianNoise(std=0.001), TopK(share=0.05))), batch 1, initial"
    with Bar(console, clock=clock) as bar:
        clock.now += 60
        bar.step(Step(3, 12, 5, CELL, Status.DONE, 2.0, Estimate(240)))
        bar._progress.refresh()
        clock.now += 120
        bar._progress.refresh()
        bar.step(Step(4.5, 12, 0, long, None, None, Estimate(100, at_least=True)))
        bar._progress.refresh()
        assert bar._progress.tasks[0].percentage == 37.5
    shown = text.getvalue()
    for words in (f"{CELL} (5 cells kept)", " 3/12", "3/min", "about 4 min left", "about 2 min left", "at least 100 s"):
        assert words in shown
    assert "…" not in shown
    assert long in " ".join(shown.replace("\n", " ").split())


def test_without_a_terminal_each_end_is_a_line() -> None:
    console, text = screen(terminal=False, width=40)
    clock = Clock()
    with Bar(console, clock=clock) as bar:
        bar.step(Step(0, 12, 5, CELL, None))
        clock.now += 60
        bar.step(Step(1, 12, 5, CELL, Status.DONE, 12.3, Estimate(240)))
        bar.step(Step(2, 12, 5, CELL, Status.REFUSED, 0.0, None))
        bar.step(Step(2.5, 12, 5, "training with none, 6 of 12", None))
        clock.now += SILENCE
        bar.step(Step(2.75, 12, 5, "training with none, 9 of 12", None, None, Estimate(9, at_least=True)))
    assert text.getvalue().splitlines() == [
        f"1/12 {CELL} (5 cells kept): done in 12 s (1/min, about 4 min left)",
        f"2/12 {CELL} (5 cells kept): refused (2/min)",
        "2/12 training with none, 9 of 12 (5 cells kept) (1.83/min, at least 9.0 s left)",
    ]


def test_quiet_says_nothing() -> None:
    for terminal in (True, False):
        console, text = screen(terminal)
        with Bar(console, quiet=True, title="A title") as bar:
            bar.begin(quick(), 1)
            bar.step(Step(3, 12, 0, "text", Status.DONE))
        bar.end()
        assert text.getvalue() == ""


def test_a_title_comes_before_the_first_step_and_the_time_at_the_end() -> None:
    console, text = screen(terminal=False)
    clock = Clock()
    with Bar(console, title="Search: 12 candidates.", steady=True, clock=clock) as bar:
        assert text.getvalue() == ""
        clock.now += SILENCE
        bar.step(Step(10, 40, 0, "accuracy of 12 policies", None))
    bar.end()
    lines = text.getvalue().splitlines()
    assert lines[0] == "Search: 12 candidates."
    assert lines[1].startswith("Took 30 s; no process held more than ")
    assert peak_memory() > 2**20


def test_steps_that_cost_alike_are_estimated_by_their_pace() -> None:
    console, text = screen(terminal=False)
    clock = Clock()
    with Bar(console, steady=True, clock=clock) as bar:
        bar.step(Step(50, 50, 0, "training a little", None))
        clock.now += 20
        bar.step(Step(1, 41, 0, "scores", None))
        clock.now += SILENCE
        bar.step(Step(11, 41, 0, "scores", None))
    assert text.getvalue() == "11/41 scores (22/min, about 82 s left)\n"


def test_the_first_answer_is_one_sentence(made: Any) -> None:
    console, text = screen(terminal=False)
    Bar(console).say_first_answer([made.record(), made.record(label="geiping2020", psnr=12)])
    assert text.getvalue().startswith("First answer. No defence: leaks. All 8 images can be recognised")
    assert text.getvalue().count("\n") == 1


def test_a_title_counts_what_will_run() -> None:
    plan = standard()
    said = title_of_plan(plan, 2)
    measured, checks = (sum((cell.purpose == "measure") is wanted for cell in plan.cells()) for wanted in (True, False))
    assert measured == (1 + len(plan.defences)) * 4
    assert said == (
        f"Standard audit: {measured + checks} cells: no defence and {len(plan.defences)} defences x 1 attack x 2 batch "
        f"sizes x 2 stages, and {checks} checks of the audit itself. 2 workers; a search holds at most 1 GiB of "
        "candidates at a time in each."
    )
    alone = plan.model_copy(update={"defences": ()})
    assert ": no defence x 1 attack x " in title_of_plan(alone, 1)
    assert " 1 worker; " in title_of_plan(alone, 1)
