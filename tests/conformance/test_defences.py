"""Every installed defence keeps the promises of its family."""

from __future__ import annotations

import pytest

from leaktight.core.defence import Defence
from leaktight.testing.defences import check_defence
from leaktight.testing.samples import installed, sample

DEFENCES = [pytest.param(made, sample(made), id=repr(sample(made) or made)) for made in installed("defence").values()]


@pytest.mark.parametrize(("made", "defence"), DEFENCES)
def test_the_defence_conforms(made: type[Defence], defence: Defence | None) -> None:
    if defence is None:
        pytest.skip(f"{made.__name__} has settings without a default; its own test calls check_defence")
    check_defence(defence)
