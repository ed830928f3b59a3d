from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks import GradientMatching
from leaktight.core.probe import Attempt
from leaktight.core.record import Cell, Record
from leaktight.learning import Federated
from leaktight.models import DeepDLNet
from leaktight.papers import Check, Records, Row, Tables
from leaktight.papers.layer_leakage.inversion import rows, span
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where


def test_the_first_layer_must_be_best_alone_and_missed_in_sets(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    alone = find_check("rMSE(best other layer alone) - rMSE(first layer alone)")
    # Every seed was answered alike, on the same images.
    assert (alone.value, alone.low, alone.high) == pytest.approx((0.2, 0.2, 0.2))
    assert find_check("rMSE(layers 2-4) - rMSE(layers 1-4)").value == pytest.approx(0.3)
    assert find_check("rMSE(layers 2-8) - rMSE(layers 1-8)").value == pytest.approx(0.3)
    rows_where(tables["inversion"], layers="5")[0] |= {"more": -0.1, "more_low": -0.2, "more_high": -0.05}
    assert not find_check("rMSE(best other layer alone)").holds


def test_errors_are_compared_on_the_same_images_of_each_seed(
    study: Study, plans: Plans, answer: Callable[[Cell], Record]
) -> None:
    def harder(cell: Cell) -> Record:
        """Answer with larger errors for each further seed: the first layer loses as much as any other."""
        found = answer(cell)
        more = cell.seed - study.seed
        return found.model_copy(
            update={"readings": tuple(one.model_copy(update={"value": one.value + more}) for one in found.readings)}
        )

    cells = [cell for cell in plans["inversion"].cells() if cell.purpose == "measure"]
    found = rows(study, Records({"inversion": [harder(cell) for cell in cells]}))
    [five] = rows_where(found, layers="5")
    assert number(five, "rmse_relative") == pytest.approx(2.0)
    width = [abs((number(five, f"{name}_high") or 0) - (number(five, name) or 0)) for name in ("rmse_relative", "more")]
    assert width[0] > 1
    assert width[1] == pytest.approx(0)
    assert [row["more"] for row in found if row["layers"] in ("1", "1-2", "1-4")] == [None] * 3


def test_inversion_matches_some_layers_of_one_gradient(plans: Plans, study: Study) -> None:
    plan = plans["inversion"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    assert (scenario.rounds, scenario.normalise, scenario.model) == (0, False, DeepDLNet())
    assert (plan.grid.batch_sizes, plan.grid.victims, plan.grid.stages) == ((1,), 4, ("initial",))
    assert plan.grid.seeds == (5, 6, 7)
    assert len(plan.probes) == len(study.inversion.sets) == 13
    probe = plan.probes["layers 2-4"]
    assert isinstance(probe, Attempt)
    assert isinstance(probe.attack, GradientMatching)
    assert probe.attack.layers == ("body.conv2", "body.conv3", "body.conv4")
    assert (probe.attack.distance, probe.attack.labels, probe.attack.iterations) == ("l2", "read", 20)
    last = plan.probes["layers 8"]
    assert isinstance(last, Attempt)
    assert isinstance(last.attack, GradientMatching)
    assert last.attack.layers == ("head",)


@pytest.mark.parametrize(("numbers", "name"), [((8,), "8"), ((1, 2), "1-2"), ((2, 3, 4, 5, 6, 7, 8), "2-8")])
def test_sets_of_layers_have_short_names(numbers: tuple[int, ...], name: str) -> None:
    assert span(numbers) == name


def test_inversion_says_how_many_numbers_there_are(tables: Tables, only: Callable[..., Row]) -> None:
    assert [row["layers"] for row in tables["inversion"]][:8] == [str(at) for at in range(1, 9)]
    first, second, whole = (only("inversion", layers=layers) for layers in ("1", "2", "1-8"))
    # 12 filters of 3 x 5 x 5, and of 12 x 5 x 5; pictures here are 16x16, and so 12 x 4 x 4 go into the head of six
    # classes.
    assert [row["numbers"] for row in (first, second)] == [12 * 75 + 12, 12 * 300 + 12]
    assert whole["numbers"] == 912 + 6 * 3612 + 6 * 192 + 6
    assert first["pixels"] == 768
    assert (number(first, "rmse_relative"), number(first, "psnr")) == pytest.approx((0.8, 12.5))
    assert number(whole, "rmse_relative_low") == pytest.approx(0.1)
