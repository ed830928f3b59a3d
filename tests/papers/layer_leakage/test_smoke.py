"""The whole experiment at its smallest scale; and faces, deep networks and a participant who attacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.papers import Order, Records, Reproduction
from leaktight.papers.layer_leakage import PAPER, tasks
from leaktight.papers.layer_leakage.scales import study_of
from leaktight.papers.row import number, rows_where
from leaktight.running import run

# The whole run is one fixture; on a busy machine it may take its time.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_every_table_is_full(smoke: Reproduction) -> None:
    assert smoke.tables.keys() == PAPER.keys.keys()
    # These are ours, so that nothing published stands beside them.
    assert smoke.published.keys() == PAPER.keys.keys() - {"mixed", "sealing", "guard", "matched", "clients"}
    for name, rows in smoke.tables.items():
        assert rows
        for row in rows:
            ends = ("_low", "_high", "_lead")
            gaps = {column for column, value in row.items() if value is None and not column.endswith(ends)}
            # What compares rows stands at one of them alone.
            gaps -= {"guard": {"gap"}, "clients": {"gain"}, "inversion": {"more"}}.get(name, set())
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
    # Four correlations; 2 places of pure batches, one of mixed, 2 properties and 2 tasks; a classifier; 2 of information;
    # 2 of inversion. Of our tables: sealing one layer, 2 counts guarded by noise or sealed, matched labels, 12 of clients.
    assert len(smoke.checks) == 4 + 7 + 1 + 2 + 2 + 1 + 4 + 1 + 12
    for check in smoke.checks:
        assert check.value is not None or "equal accuracy" in check.name


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
    records = {name: run(plan, tmp_path / name) for name, plan in PAPER.plans(study).items()}
    measured = {
        name: run(plan, tmp_path / f"deep-{name}") for name, plan in PAPER.plans(deep).items() if name.endswith("model")
    }
    assert {record.status.value for each in (records, measured) for found in each.values() for record in found} == {
        "done"
    }
    tables = PAPER.tables(study, Records(records))
    assert all(row["property_auc"] is not None for name in ("layers", "mixed") for row in tables[name])
    assert all(row["share"] is not None for row in tasks.rows(deep, Records(measured)))
    assert {row["numbers"] for row in tables["inversion"]} == {912, 6 * 192 + 6}
    assert len(PAPER.checks(tables)) > 0
