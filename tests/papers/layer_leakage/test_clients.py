from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.core.record import Cell, Record
from leaktight.papers import Check, Records, Tables
from leaktight.papers.layer_leakage import clients
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where


def test_being_active_is_compared_with_being_passive_seed_by_seed(
    study: Study, plans: Plans, answer: Callable[[Cell], Record]
) -> None:
    def differ(cell: Cell) -> Record:
        """Answer with a tenth less for each further seed, and a twentieth more if the attacker is active."""
        found, more = answer(cell), (study.seed - cell.seed) / 10 + (0.05 if cell.label == clients.ACTIVE else 0.0)
        return found.model_copy(
            update={"readings": tuple(one.model_copy(update={"value": one.value + more}) for one in found.readings)}
        )

    names = [name for name in plans if "clients" in name]
    records = Records({name: [differ(c) for c in plans[name].cells() if c.purpose == "measure"] for name in names})
    rows = rows_where(clients.rows(study, records), seat="participant")
    assert {row["gain"] for row in rows_where(rows, attack=clients.PASSIVE)} == {None}
    for row in rows_where(rows, attack=clients.ACTIVE):
        wide = (number(row, "property_auc_high") or 0) - (number(row, "property_auc_low") or 0)
        assert wide > 0.4
        assert [row[f"gain{end}"] for end in ("", "_low", "_high")] == pytest.approx([0.05] * 3)


def test_being_active_must_not_lose(tables: Tables, find_check: Callable[..., Check]) -> None:
    name = "Property AUC(active) - property AUC(passive), fedsgd with 2 participants"
    assert (find_check(name).value, find_check(name).holds) == (0.0, True)
    place: dict[str, Any] = {"attack": clients.ACTIVE, "protocol": "fedsgd", "participants": 2}
    rows_where(tables["clients"], **place)[0] |= {"gain": -0.1, "gain_low": -0.2, "gain_high": -0.05}
    assert find_check(name).word == "does not hold"
