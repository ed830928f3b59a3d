"""The whole way with the real parts, on bundled data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leaktight import audit
from leaktight.audit.rehearsal import rehearse
from leaktight.core.errors import InvalidValue
from leaktight.core.record import Record, Status

PLAN: dict[str, Any] = {
    "scenario": {"data": "digits", "model": "mlp", "rounds": 2, "participants": 3},
    "defences": [{"kind": "gaussian_noise", "std": 0.1}, {"kind": "dp_sgd"}],
    "attacks": ["analytic", {"preset": "dlg2019", "iterations": 2}],
    "grid": {"victims": 5, "stages": ["initial"]},
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    return audit.run(audit.parse_plan(PLAN), tmp_path_factory.mktemp("audit"))


def of(records: list[Record], purpose: str, label: str = "analytic", defence: str = "none") -> Record:
    [found] = [r for r in records if (r.cell.purpose, r.cell.label, r.cell.defence.kind) == (purpose, label, defence)]
    return found


def test_every_cell_is_done(records: list[Record]) -> None:
    assert [(str(r.cell.label), r.reason) for r in records if r.status is not Status.DONE] == []
    assert len(records) == 1 + 3 * 2 + 2


def test_the_control_is_exact_and_the_null_view_is_not(records: list[Record]) -> None:
    control = of(records, "control")
    assert control.reading("mse", "raw").value < 1e-8
    assert control.reading("psnr", "raw").low > 80
    for null in (of(records, "null"), of(records, "null", "dlg2019*")):
        psnr = null.reading("psnr", "raw")
        assert psnr.value < psnr.chance + 3
        assert null.reading("mse", "raw").value > 0.05


def test_noise_hurts_the_attack_and_the_record_says_what_it_costs(records: list[Record]) -> None:
    plain, noisy = of(records, "measure"), of(records, "measure", defence="gaussian_noise")
    assert plain.reading("mse", "raw").value < 1e-6
    assert noisy.reading("mse", "raw").value > 1e-2
    assert all(0 <= record.reading("accuracy").value <= 1 for record in records)
    assert any("epsilon" in name for name in of(records, "measure", defence="dp_sgd").notes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"grid": {"batch_sizes": [1, 5000]}}, "The batch size must be at most 479, what the smallest participant owns."),
        ({"threat": {"seat": "sever"}}, "There is no seat `sever` for analytic in this scenario. Did you mean `server`?"),
        ({"scenario": {"data": {"kind": "digits"}, "model": {"kind": "factory", "function": "nowhere.at:all"}}}, "nowhere"),
    ],
)
def test_what_cannot_work_is_said_before_the_audit_starts(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    plan = audit.parse_plan({**PLAN, **changes})
    with pytest.raises(InvalidValue) as caught:
        rehearse(plan)
    assert sentence in str(caught.value)
    with pytest.raises(InvalidValue):
        audit.run(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_presets_are_plans() -> None:
    for plan in (audit.quick(), audit.standard()):
        assert audit.Plan.model_validate(plan.to_dict()) == plan
        rehearse(plan)
    assert len(audit.standard().cells()) > 10 * len(audit.quick().cells())
