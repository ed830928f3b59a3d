"""Every installed defence keeps the promises of its family, on each kind of message that it does not refuse."""

from __future__ import annotations

import pytest

from leaktight.captures import AsCaptured
from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.testing.conformance import installed_classes, sample
from leaktight.testing.cut import cut_run, cut_step
from leaktight.testing.defences import Play, Step, check_defence
from leaktight.testing.hooks import toy_step
from leaktight.testing.toys import PARTY, toy_run

DEFENCES = [
    pytest.param(made, sample(made), id=repr(sample(made) or made)) for made in installed_classes("defence").values()
]
PLAYS = {"gradient": (toy_run, toy_step), "cut_gradient": (cut_run, cut_step)}


def refused(defence: Defence, step: Step) -> bool:
    try:
        step(defence, Local(PARTY, 0), 0)
    except Refusal:
        return True
    return False


@pytest.mark.parametrize(("play", "step"), PLAYS.values(), ids=PLAYS)
@pytest.mark.parametrize(("made", "defence"), DEFENCES)
def test_the_defence_conforms(made: type[Defence], defence: Defence | None, play: Play, step: Step) -> None:
    if defence is None:
        pytest.skip(f"{made.__name__} has settings without a default; its own test calls check_defence")
    if refused(defence, step):
        pytest.skip(f"{defence} refuses this kind of message")
    check_defence(defence, play, step)


@pytest.mark.parametrize(("made", "defence"), DEFENCES)
def test_the_defence_protects_some_kind_of_message(made: type[Defence], defence: Defence | None) -> None:
    # What was done to captured messages was done elsewhere, by whatever means.
    assert (
        defence is None
        or isinstance(defence, AsCaptured)
        or not all(refused(defence, step) for _, step in PLAYS.values())
    )
