"""The whole experiment at its smallest scale, on bundled digits, and what it leaves out: faces, deep networks, a participant who attacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.papers import Order, Reproduction, find_paper
from leaktight.papers.layer_leakage.checks import checks_of
from leaktight.papers.layer_leakage.inversions import inversion_rows
from leaktight.papers.layer_leakage.measured import Measured
from leaktight.papers.layer_leakage.plans import plans_of
from leaktight.papers.layer_leakage.settings import study_of
from leaktight.papers.layer_leakage.tables import tables_of
from leaktight.papers.reproduction import number, rows_where
from leaktight.running import run

PAPER = find_paper("layer-leakage")
# The whole run is one fixture.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_every_table_is_full(smoke: Reproduction) -> None:
    assert smoke.tables.keys() == PAPER.keys.keys()
    # Mixed batches are ours, so that nothing published stands beside them.
    assert smoke.published.keys() == PAPER.keys.keys() - {"mixed"}
    for name, rows in smoke.tables.items():
        assert rows
        for row in rows:
            gaps = {column for column, value in row.items() if value is None and not column.endswith(("_low", "_high"))}
            # With one subject there is no other whose information could tell of the first property.
            assert gaps <= ({"r_other"} if name == "properties" and row["property"] == "6 or more" else set())


def test_the_property_leaks_from_the_linear_layer_and_more_than_from_the_first(smoke: Reproduction) -> None:
    first, linear = (rows_where(smoke.tables["layers"], layer=layer)[0] for layer in (1, 4))
    low = number(linear, "property_auc_low")
    assert low is not None
    assert low > 0.5
    assert (number(linear, "v_information") or 0) > (number(first, "v_information") or 0)


def test_the_task_is_learned(smoke: Reproduction) -> None:
    assert {row["accuracy"] for row in smoke.tables["layers"]} == {smoke.tables["tasks"][0]["accuracy"]}
    low = number(smoke.tables["layers"][0], "accuracy_low")
    assert low is not None
    assert low > 0.6


def test_shares_of_sensitivity_add_up(smoke: Reproduction) -> None:
    for task in ("parity", "digit"):
        shares = [number(row, "share") or 0 for row in rows_where(smoke.tables["tasks"], task=task)]
        assert sum(shares) == pytest.approx(1)


def test_the_head_tells_less_of_the_input_than_any_other_layer(smoke: Reproduction) -> None:
    shares = [number(row, "upper_share") or 0 for row in smoke.tables["mutual_information"]]
    assert min(shares) == shares[-1] < 0.9


def test_every_claim_is_answered(smoke: Reproduction) -> None:
    # Four correlations; places of pure and of mixed batches, 2 properties and 2 tasks; a classifier; 2 of information; 2 of inversion.
    assert len(smoke.checks) == 4 + 6 + 1 + 2 + 2
    for check in smoke.checks:
        assert check.value is not None


def test_a_participant_attacks_faces_and_deep_networks_are_measured(sets: str, tmp_path: Path) -> None:
    """Every part of the full experiment but the same again: its smallest network attacked, its largest measured."""
    study = study_of(Order(scale="paper", data=sets, steps=1))
    study = study.model_copy(
        update={
            "subjects": study.subjects[1:2],
            "networks": ("AlexNet",),
            "compared": ("AlexNet",),
            "properties": (),
            "tasks": (),
            "inversion": study.inversion.model_copy(update={"sets": ((1,), (8,))}),
        }
    )
    deep = study.model_copy(update={"networks": ("VGG11Net", "FCNet")})
    plans = plans_of(study, 0) | {name: plan for name, plan in plans_of(deep, 0).items() if name.endswith("model")}
    records = {name: run(plan, tmp_path / name) for name, plan in plans.items()}
    assert {record.status.value for found in records.values() for record in found} == {"done"}
    tables = tables_of(Measured(study, records))
    assert all(row["property_auc"] is not None for name in ("layers", "mixed") for row in tables[name])
    assert all(row["share"] is not None for row in tables_of(Measured(deep, records))["tasks"])
    tables["inversion"] = inversion_rows(study, records)
    assert {row["numbers"] for row in tables["inversion"]} == {912, 6 * 192 + 6}
    assert len(checks_of(tables)) > 0
