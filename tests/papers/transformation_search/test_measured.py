from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Cell
from leaktight.defences import Pruning, Transformation
from leaktight.papers.paper import Records
from leaktight.papers.transformation_search.measured import Measured, Place, _by_seed, told
from leaktight.papers.transformation_search.plans import POLICIES, SCORES, TRANSFER, score_of
from leaktight.papers.transformation_search.settings import Study
from leaktight.transforms.policy import Policy

HYBRID, FIRST = (Transformation(policy=Policy.of(text)) for text in ("3-1+18-15", "3-1"))


def measured_of(study: Study, records: Records) -> Measured:
    return Measured(study, {"cifar10-lenet": Policy.of("3-1+18-15")}, 5, records)


@pytest.fixture
def measured(study: Study, answered: Callable[..., Records]) -> Measured:
    return measured_of(study, answered())


@pytest.fixture
def place(study: Study) -> Place:
    return Place(study.focus, POLICIES)


def test_records_are_found_by_audit_defence_probe_and_stage(measured: Measured, study: Study, place: Place) -> None:
    # 14 dB without a defence, 6 less with the hybrid, a tenth more with each seed.
    assert {seed: one.reading("psnr", "used") for seed, one in measured.done(place, HYBRID).items()}.keys() == {5, 6, 7}
    assert [one.value for one in measured.readings(place, HYBRID, "psnr", "used")] == pytest.approx([8.5, 8.6, 8.7])
    assert measured.readings(Place(study.focus, POLICIES, "another"), HYBRID, "psnr") == []
    assert measured.readings(Place(study.focus, POLICIES, stage="end"), HYBRID, "psnr") == []
    assert measured.readings(Place(study.focus, TRANSFER), HYBRID, "psnr") == []
    early, end = (Place(study.focus, SCORES, score_of(None), stage) for stage in ("early", "end"))
    values = [measured.reading(one, Undefended(), "privacy_score") for one in (early, end)]
    assert [one and one.value for one in values] == pytest.approx([0.5, 0.6])


def test_models_are_looked_up_when_the_study_attacks_them(measured: Measured, study: Study, place: Place) -> None:
    late = Measured(study.model_copy(update={"attacked": "end"}), measured.found, 5, measured.records)
    assert measured.done(place, HYBRID)
    assert late.done(place, HYBRID) == {}


def test_drops_compare_trainings_of_the_same_seed(measured: Measured, place: Place) -> None:
    row = measured.attacked(place, [HYBRID])
    assert row["psnr"] == pytest.approx(8.6)
    assert row["psnr_original"] == pytest.approx(7.6)
    assert row["chance"] == 11.5
    # The same in each of three seeds, so that nothing is left to doubt, whatever differs between seeds.
    assert [row[f"psnr_drop{end}"] for end in ("", "_low", "_high")] == pytest.approx([6.0, 6.0, 6.0])
    learned = measured.learned(place, [HYBRID, FIRST])
    assert learned["accuracy_change"] == pytest.approx(0.0065)
    assert learned["trainings"] == 6


def test_of_one_training_the_drop_is_over_its_images(measured: Measured, study: Study) -> None:
    row = measured.attacked(Place(study.transfers[0], TRANSFER), [HYBRID])
    assert [row[f"psnr_drop{end}"] for end in ("", "_low", "_high")] == pytest.approx([6.0, 6.0, 6.0])
    assert [row[f"psnr{end}"] for end in ("", "_low", "_high")] == pytest.approx([8.5, 8.3, 8.7])
    learned = measured.learned(Place(study.transfers[0], TRANSFER), [HYBRID])
    assert learned["accuracy_change"] == pytest.approx(0.006)
    assert learned["accuracy_change_low"] < 0 < learned["accuracy_change_high"]  # type: ignore[operator]


def test_what_failed_or_was_null_is_left_out(study: Study, answered: Callable[..., Records], place: Place) -> None:
    def fails(cell: Cell) -> bool:
        return cell.seed == 6 and cell.defence == Undefended()

    measured = measured_of(study, answered(fails))
    assert list(measured.done(place, Undefended())) == [5, 7]
    assert measured.attacked(place, [HYBRID])["psnr_drop"] == pytest.approx(6.0)
    nothing = measured_of(
        study, {name: [one for one in rows if one.cell.purpose == "null"] for name, rows in answered().items()}
    )
    assert any(nothing.records.values())
    row = {**nothing.attacked(place, [Pruning(rate=0.7)]), **nothing.learned(place, [Pruning(rate=0.7)])}
    assert {value for name, value in row.items() if name != "trainings"} == {None}
    assert row["trainings"] == 0


def test_one_training_has_its_own_interval_and_several_have_that_over_them() -> None:
    one = Reading(name="psnr", value=7.0, low=6.5, high=7.5)
    assert told("psnr", [one]) == {"psnr": 7.0, "psnr_low": 6.5, "psnr_high": 7.5}
    row = told("psnr", [one, Reading(name="psnr", value=7.2)])
    # Student's t with one degree of freedom is 12.706; the error of the mean is 0.1.
    assert row["psnr_high"] == pytest.approx(7.1 + 1.2706, rel=1e-3)
    assert told("psnr", []) == {"psnr": None, "psnr_low": None, "psnr_high": None}


def test_policies_that_share_a_training_count_once_for_it() -> None:
    assert _by_seed([(0, 1.0), (1, 3.0), (0, 2.0), (1, 5.0)]) == [1.5, 4.0]
    assert _by_seed([(0, 1.0), (0, 2.0)]) == [1.0, 2.0]
