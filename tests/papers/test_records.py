from __future__ import annotations

import pytest

from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.papers import Records
from leaktight.probes import Utility

NOISE = GaussianNoise(std=0.1)


def record(seed: int = 0, defence: Defence = Undefended(), rounds: int = 1, **changes: object) -> Record:  # noqa: B008
    """Return a record with an accuracy that says which seed it was, and a score of two layers."""
    cell = Cell(
        scenario=Federated(data=Digits(), model=MLP(), participants=2, rounds=rounds),
        defence=defence,
        probe=Utility(),
        seed=seed,
        label="utility",
    )
    readings = (
        Reading(name="accuracy", value=0.5 + seed / 10, against="raw"),
        Reading(name="accuracy", value=0.9, by="another attack"),
        Reading(name="score", value=1.0, layer="one"),
        Reading(name="score", value=2.0, layer="two"),
    )
    changed = {name: changes.pop(name) for name in ("purpose", "label") if name in changes}
    whole = {"cell": cell.model_copy(update=changed), "status": Status.DONE, "readings": readings, **changes}
    return Record.model_validate(whole)


FAILED = {"status": Status.FAILED, "readings": (), "reason": "No luck."}


@pytest.fixture
def records() -> Records:
    return Records(
        {
            "plain": [record(), record(seed=1), record(defence=NOISE), record(defence=NOISE, rounds=5)],
            "other": [record(), record(purpose="null"), record(purpose="control")],
        }
    )


def test_lines_are_selected_by_audit_cell_and_scenario(records: Records) -> None:
    assert (len(records), len(records.where("plain")), len(records.where("plain", "other"))) == (5, 4, 5)
    assert [one.cell.seed for one in records.where("plain", defence=Undefended())] == [0, 1]
    assert len(records.where(defence=NOISE, rounds=5)) == 1
    assert len(records.where(defence=NOISE).where(rounds=1, label="utility")) == 1


def test_controls_and_null_views_are_no_measurements(records: Records) -> None:
    assert [one.cell.purpose for one in records.where("other")] == ["measure"]
    assert [one.cell.purpose for one in records.nulls.where("other").done] == ["null"]
    with pytest.raises(InvalidValue, match="No cell of `plain` was planned"):
        records.nulls.where("plain")


def test_a_question_that_no_line_answers_is_an_error(records: Records) -> None:
    with pytest.raises(InvalidValue, match=r"There is no audit named `plane`. Did you mean `plain`\?"):
        records.where("plane")
    with pytest.raises(InvalidValue, match=r"No cell of `plain` was planned with label=utility, rounds=7."):
        records.where("plain", label="utility", rounds=7)
    with pytest.raises(InvalidValue, match=r"No cell of `plain`, `other` was planned with nothing=1."):
        records.where(nothing=1)


def test_readings_are_those_of_each_seed_and_of_the_attack_itself(records: Records) -> None:
    plain = records.where("plain", defence=Undefended())
    assert {seed: one.value for seed, one in plain.readings("accuracy").items()} == {0: 0.5, 1: 0.6}
    assert [one.value for one in plain.readings("score", layer="two").values()] == [2.0, 2.0]
    assert list(plain.readings("accuracy", against="raw")) == [0, 1]


@pytest.mark.parametrize("wanted", [{"name": "auc"}, {"name": "score"}, {"name": "accuracy", "against": "used"}])
def test_a_reading_that_is_missing_is_an_error_unless_it_is_optional(records: Records, wanted: dict[str, str]) -> None:
    plain = records.where("plain", defence=Undefended())
    with pytest.raises(InvalidValue, match="The done cell `utility` has no reading"):
        plain.readings(**wanted)
    assert plain.readings(**wanted, optional=True) == {}


def test_cells_that_failed_are_left_out_on_request_alone() -> None:
    records = Records({"plain": [record(), record(seed=1, **FAILED)]}).where("plain")
    with pytest.raises(InvalidValue, match="The failed cell `utility` has no reading `accuracy`"):
        records.readings("accuracy")
    assert list(records.done.readings("accuracy")) == [0]
    nothing = Records({"plain": [record(**FAILED)]}).where("plain").done
    assert (len(nothing), nothing.readings("accuracy"), nothing.reading("accuracy")) == (0, {}, None)


def test_several_cells_of_one_seed_are_an_error_unless_they_are_the_same(records: Records) -> None:
    with pytest.raises(InvalidValue, match=r"Several cells of `plain` have the seed 0. Ask for more columns."):
        records.where("plain", defence=NOISE).readings("accuracy")
    assert list(records.where("plain", "other", seed=0, defence=Undefended()).readings("accuracy")) == [0]


def test_one_reading_is_that_of_one_seed(records: Records) -> None:
    one = records.where("plain", seed=1).reading("accuracy")
    assert one is not None
    assert one.value == 0.6
    with pytest.raises(InvalidValue, match=r"The reading `accuracy` was asked for one seed. 2 seeds have it."):
        records.where("plain", defence=Undefended()).reading("accuracy")
