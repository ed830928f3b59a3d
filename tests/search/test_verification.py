"""Verification: what a policy hides is the difference on the same images, and what it costs that of two models."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.core.metric import Reading
from leaktight.data import Digits
from leaktight.models import MLP
from leaktight.search.settings import Search
from leaktight.search.verification import Attacked, make_plan, read_verification, verify
from leaktight.transforms import Policy

SEARCH = Search(data=Digits(), model=MLP(hidden=(8,)))
POLICY = Policy.of("0")


def test_the_attacker_knows_the_policy_and_attacks_both_models() -> None:
    plan = make_plan(SEARCH, POLICY)
    [probe] = plan.probes.values()
    assert probe.attack.kind == "strongest"
    assert {"defence", "auxiliary"} <= probe.threat.knows
    cells = [cell for cell in plan.cells() if cell.purpose == "measure"]
    assert [(cell.defence.kind, cell.stage) for cell in cells] == [
        (kind, stage) for kind in ("none", "transformation") for stage in ("initial", "end")
    ]


@pytest.mark.long
def test_one_layer_gives_images_away_whatever_they_went_through(tmp_path: Path) -> None:
    found = verify(SEARCH, POLICY, tmp_path / "audit", rounds=3, victims=2)
    assert found.failed == ()
    assert [each.stage for each in found.attacked] == ["initial", "end"]
    first = found.attacked[0]
    assert first.plain > 40
    assert first.hidden == pytest.approx(first.plain - first.policy.value)
    assert found.cost is not None
    assert found.plain_accuracy is not None
    assert found.accuracy is not None
    assert found.cost.value == pytest.approx(found.plain_accuracy - found.accuracy)
    said = found.sentences()
    assert said[0].startswith(f"Attacked before the training: PSNR {first.plain:.1f} dB without the policy,")
    assert said[2].startswith("The price: ")
    assert (tmp_path / "audit" / "summary.json").exists()


def test_what_was_not_measured_is_said() -> None:
    found = read_verification([])
    assert (found.attacked, found.cost, found.sentences()) == ((), None, [])


@pytest.mark.parametrize(
    ("plain", "low", "said"),
    [
        (20.0, 11.0, "It hides 3.0 dB (1.0 to 5.0)."),
        (20.0, 15.0, "It hides 3.0 dB (1.0 to 5.0). Images are still rebuilt."),
        (13.5, 11.0, "The attack failed even without the policy, so this says nothing of what it hides."),
        (13.5, 15.0, "It hides 3.0 dB (1.0 to 5.0). Images are still rebuilt."),
    ],
)
def test_an_attack_that_fails_without_the_policy_says_nothing_of_it(plain: float, low: float, said: str) -> None:
    policy = Reading(name="psnr", value=low + 1, low=low, high=low + 2, chance=14.0, leaks="high")
    sentence = str(Attacked("end", plain, policy, 14.0, 3.0, (1.0, 5.0)))
    assert sentence.partition("that needs no message. ")[2] == said
