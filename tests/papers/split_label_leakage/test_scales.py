from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.data import Criteo, RareDigit
from leaktight.models.wide_deep import WideDeep
from leaktight.papers import Order
from leaktight.papers.split_label_leakage import PAPER
from leaktight.papers.split_label_leakage.audits import make_scenario
from leaktight.papers.split_label_leakage.scales import BOUNDS, RATIOS, missing_sets, studies


def test_smoke_needs_no_files() -> None:
    [study] = studies(Order())
    assert study.data == RareDigit()
    assert study.rounds in study.candidates


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_the_other_scales_need_a_folder_with_clicks(scale: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=f"The scale `{scale}` needs real data sets"):
        studies(Order.model_validate({"scale": scale}))
    with pytest.raises(InvalidValue, match="There is no folder"):
        studies(Order.model_validate({"scale": scale, "data": str(tmp_path / "nowhere")}))
    with pytest.raises(InvalidValue, match="must have a sub-folder `ctr`"):
        studies(Order.model_validate({"scale": scale, "data": str(tmp_path)}))


def test_small_has_three_seeds_and_all_bounds_but_of_the_largest_batch(sets: str) -> None:
    found = studies(Order(scale="small", data=sets))
    assert [study.name for study in found] == [
        "Criteo",
        "Criteo, wide part on all",
        "Criteo, no wide part",
        "UCI credit",
        "UCI credit, largest batch",
    ]
    clicks, wide, deep, credit, largest = found
    assert [study.passes for study in found] == [20, 0, 0, 20, 0]
    assert (largest.data, largest.label_party) == (credit.data, credit.label_party)
    # The largest without repeated rows: all of them.
    for study in (wide, largest):
        rows = len(study.data.load().train)
        assert make_scenario(study, study.data, rounds=1, moments=1).batch_size == rows < study.batch_size
    for study in found:
        assert study.seeds >= 3
        assert study.bounds == (BOUNDS if study is not largest else (0.1, 0.4))
        assert 5.0 in study.ratios
        assert study.rounds in study.candidates
    assert clicks.data == wide.data == deep.data
    assert (deep.label_party, deep.feature_party) == ((), ("*",))
    assert (clicks.label_party, clicks.feature_party) == (("I*",), ("C*",))
    assert (wide.label_party, wide.feature_party) == (("*",), ("*",))


def test_credit_may_be_missing_and_is_told(sets: str) -> None:
    assert missing_sets(Order(scale="small", data=sets)) == []
    shutil.rmtree(Path(sets) / "tabular")
    order = Order(scale="small", data=sets)
    assert len(studies(order)) == 3
    assert missing_sets(order) == ["UCI credit"]
    left_out, size, *_ = PAPER.remarks(order, PAPER.setup(order))
    assert left_out == "Left out, because the data folder has no such set: UCI credit."
    assert size.startswith("The Criteo, wide part on all data have 120 training rows")
    assert missing_sets(Order()) == []


def test_the_full_experiment_has_the_settings_of_section_4(sets: str) -> None:
    [study] = studies(Order(scale="paper", data=sets))
    assert isinstance(study.data, Criteo)
    assert study.network == WideDeep(hidden=(128, 128, 128, 128))
    assert (study.batch_size, study.epochs, study.rounds) == (65_536, 30, 0)
    assert (study.bounds, study.ratios, study.pause) == (BOUNDS, RATIOS, 100)
    assert (study.label_party, study.feature_party) == (("*",), ("*",))
    remarks = PAPER.remarks(Order(scale="paper", data=sets), PAPER.setup(Order(scale="paper", data=sets)))
    assert any("have 120 training rows" in remark for remark in remarks)


def test_steps_keep_every_part_and_cut_what_is_counted(sets: str) -> None:
    [full], [cut] = (studies(Order(scale="paper", data=sets, steps=steps)) for steps in (None, 1))
    assert (cut.rounds, cut.epochs, cut.victims, cut.pause, cut.seeds, cut.passes) == (1, 0, 1, 1, 1, 0)
    assert (cut.bounds, cut.ratios) == ((0.4,), (0.25, 5.0))
    assert (cut.network, cut.batch_size, cut.learning_rate) == (full.network, full.batch_size, full.learning_rate)
    assert isinstance(cut.data, Criteo)
    assert (cut.data.train_limit, cut.data.test_limit) == (2000, 1000)
    remark, *_ = PAPER.remarks(
        Order(scale="paper", data=sets, steps=1), PAPER.setup(Order(scale="paper", data=sets, steps=1))
    )
    assert remark.startswith("Cut by --steps 1")


def test_cut_candidates_are_different_from_each_other() -> None:
    [cut] = studies(Order(steps=1))
    assert cut.candidates == (1,)
    assert (cut.victims, cut.passes) == ("all", 2)
    [more] = studies(Order(steps=1000))
    [full] = studies(Order())
    assert (more.rounds, more.candidates, more.victims) == (full.rounds, full.candidates, full.victims)
