"""The whole way with the real parts, on bundled data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leaktight import plans, running
from leaktight.core.errors import InvalidValue
from leaktight.core.record import Record, Status
from leaktight.plans.validation import validate_plan

PLAN: dict[str, Any] = {
    "scenario": {"data": "digits", "model": "mlp", "rounds": 2, "participants": 3},
    "defences": [{"kind": "gaussian_noise", "std": 0.1}, {"kind": "dp_sgd"}],
    "attacks": ["analytic", {"preset": "dlg2019", "iterations": 2}],
    "grid": {"victims": 5, "stages": ["initial"]},
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    return running.run(plans.parse_plan(PLAN), tmp_path_factory.mktemp("audit"))


def of(records: list[Record], purpose: str, label: str = "analytic", defence: str = "none") -> Record:
    [found] = [r for r in records if (r.cell.purpose, r.cell.label, r.cell.defence.kind) == (purpose, label, defence)]
    return found


def test_every_cell_is_done(records: list[Record]) -> None:
    assert [(str(r.cell.label), r.reason) for r in records if r.status is not Status.DONE] == []
    assert len(records) == 1 + 3 * 2 + 2


@pytest.mark.long
def test_two_workers_make_the_same_records(records: list[Record], tmp_path: Path) -> None:
    twice = running.run(plans.parse_plan(PLAN), tmp_path, workers=2)
    timeless = [[record.model_copy(update={"seconds": 0.0}) for record in some] for some in (records, twice)]
    assert timeless[0] == timeless[1]


def test_the_control_is_exact_and_the_null_view_is_not(records: list[Record]) -> None:
    control = of(records, "control")
    assert control.reading("mse", "raw").value < 1e-8
    assert control.reading("psnr", "raw").low > 80
    for null in (of(records, "null"), of(records, "null", "dlg2019, changed")):
        psnr = null.reading("psnr", "raw")
        assert psnr.value < psnr.chance + 3
        assert null.reading("mse", "raw").value > 0.05


def test_noise_hurts_the_attack_and_the_record_says_what_it_costs(records: list[Record]) -> None:
    plain, noisy = of(records, "measure"), of(records, "measure", defence="gaussian_noise")
    assert plain.reading("mse", "raw").value < 1e-6
    assert noisy.reading("mse", "raw").value > 1e-2
    assert all(0 <= record.reading("accuracy").value <= 1 for record in records)
    assert any("epsilon" in name for name in of(records, "measure", defence="dp_sgd").notes)


def test_epsilon_is_the_trainings_whatever_the_audit_asked_for(records: list[Record], tmp_path: Path) -> None:
    grid = {"victims": 9, "stages": ["end"], "batch_sizes": [3]}
    defences = [{"kind": "dp_sgd"}]
    other = running.run(
        plans.parse_plan({**PLAN, "defences": defences, "attacks": ["analytic"], "grid": grid}), tmp_path / "out"
    )
    assert of(other, "measure", defence="dp_sgd").notes == of(records, "measure", defence="dp_sgd").notes


def test_own_models_and_data_are_computed_again_when_they_were_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    text = "from torch import nn\ndef net(shape, classes):\n    return nn.Sequential(nn.Flatten(), nn.Linear(4, classes))\n"
    numbers = np.random.default_rng(0).random((12, 1, 2, 2)).astype(np.float32)
    document = {"scenario": {"data": "mine.npz", "model": "edited_models:net", "rounds": 1, "participants": 1}}

    def again(model: str, inputs: Any) -> list[Record]:
        Path("edited_models.py").write_text(model)
        np.savez("mine.npz", images=inputs, labels=np.arange(12) % 2)
        sys.modules.pop("edited_models", None)
        plan = plans.parse_plan({**document, "attacks": ["analytic"], "grid": {"victims": 2}})
        return running.run(plan, tmp_path / "out")

    first = again(text, numbers)
    assert again(text, numbers) == first
    assert caplog.text == ""
    edited = again(text.replace("nn.Linear(4", "nn.Linear(4, 3), nn.Tanh(), nn.Linear(3"), numbers)
    replaced = again(text, 1 - numbers)
    sys.modules.pop("edited_models", None)
    sys.path.remove(str(tmp_path))
    # The control has a model of its own, which nobody edited.
    assert [record.message for record in caplog.records] == [
        "edited_models.py changed, so 2 of 3 cells are computed again.",
        "The data and edited_models.py changed, so 3 of 3 cells are computed again.",
    ]
    assert first[0].reading("accuracy") is not None
    assert edited[0].reading("mse", "raw") != first[0].reading("mse", "raw") != replaced[0].reading("mse", "raw")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"grid": {"batch_sizes": [1, 5000]}},
            "The batch size must be at most 479, what the smallest participant owns.",
        ),
        (
            {"threat": {"seat": "sever"}},
            "There is no seat `sever` for analytic in this scenario. Did you mean `server`?",
        ),
        (
            {"scenario": {"data": {"kind": "digits"}, "model": {"kind": "factory", "function": "nowhere.at:all"}}},
            "nowhere",
        ),
    ],
)
def test_what_cannot_work_is_said_before_the_audit_starts(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    plan = plans.parse_plan({**PLAN, **changes})
    with pytest.raises(InvalidValue) as caught:
        validate_plan(plan)
    assert sentence in str(caught.value)
    with pytest.raises(InvalidValue):
        running.run(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_seed_is_validated() -> None:
    scenario = {**PLAN["scenario"], "partition": {"kind": "dirichlet", "alpha": 0.05}, "participants": 6}
    sizes = {}
    for seed in range(4):
        with pytest.raises(InvalidValue) as caught:
            validate_plan(
                plans.parse_plan({**PLAN, "scenario": scenario, "grid": {"seeds": [seed], "batch_sizes": [1700]}})
            )
        sizes[seed] = int(str(caught.value).partition("at most ")[2].partition(",")[0])
    small, large = min(sizes, key=sizes.get), max(sizes, key=sizes.get)
    assert sizes[small] < sizes[large]
    grid = {"seeds": [large, small], "batch_sizes": [sizes[large]]}
    with pytest.raises(InvalidValue, match=f"at most {sizes[small]},"):
        validate_plan(plans.parse_plan({**PLAN, "scenario": scenario, "grid": grid}))


def test_presets_are_plans() -> None:
    for plan in (plans.quick(), plans.standard()):
        assert plans.Plan.model_validate(plan.to_dict()) == plan
        validate_plan(plan)
    assert len(plans.standard().cells()) > 4 * len(plans.quick().cells())
