"""A time budget from Python, with the attacks that there really are: in a module where none is replaced by a cheap one."""

from __future__ import annotations

import pytest

from leaktight import audit_model


@pytest.mark.long
def test_a_budget_chooses_among_the_real_attacks(network, arrays):
    result = audit_model(network, arrays, ["top_k"], 90, rounds=2, grid={"victims": 2}, progress=False)
    assert next(verdict.name for verdict in result.verdicts if verdict.leak == "images") == "no defence"
    assert (result.folder / "budget.json").exists()
