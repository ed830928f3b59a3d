"""Definition 2 on the records of an audit: seeds are pooled, and each attack is judged by itself."""

from __future__ import annotations

import pytest

from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Record, Status
from leaktight.defences import GaussianNoise
from leaktight.findings.privacy_claim import judge_claim
from leaktight.metrics import Claim
from leaktight.plans import parse_plan

CLAIM = Claim(epsilon=10, delta=0.1, gamma=0.05)
NOISE = GaussianNoise(std=0.1)


def psnrs(level: float) -> list[Reading]:
    return [
        Reading.model_validate({"name": "psnr", "value": level, "n": 20, "each": (level,) * 20, "against": against})
        for against in ("raw", "used")
    ]


def records(accuracy: float = 0.7, level: float = 8.0, seeds: tuple[int, ...] = (0, 1)) -> list[Record]:
    plan = parse_plan(
        {
            "scenario": {"data": "digits", "model": "mlp", "rounds": 1},
            "defences": [{"kind": "gaussian_noise", "std": 0.1}],
            "attacks": ["analytic"],
            "grid": {"victims": 2, "seeds": list(seeds)},
        }
    )
    found = []
    known = {Undefended(): 0.71, NOISE: accuracy}
    for cell in plan.cells():
        if cell.purpose == "measure":
            value = known[cell.defence]
            learned = Reading(name="accuracy", value=value, low=value - 0.01, high=value + 0.01, n=1000)
            found.append(Record(cell=cell, status=Status.DONE, readings=(*psnrs(level), learned)))
    return found


def test_images_of_all_seeds_count_and_no_defence_is_not_judged() -> None:
    [judged] = judge_claim(records(), CLAIM)
    assert (judged.verdict.verdict, judged.verdict.used.n) == ("holds", 40)
    assert judged.verdict.loss.value == pytest.approx(0.01)
    assert str(judged).startswith("Gaussian noise (std 0.1), analytic, before training, batches of 1: The defence is ")


def test_what_is_rebuilt_or_dear_is_not_privacy_aware() -> None:
    [seen] = judge_claim(records(level=12.0), CLAIM)
    [dear] = judge_claim(records(accuracy=0.5), CLAIM)
    assert seen.verdict.verdict == dear.verdict.verdict == "does not hold"


def test_without_accuracies_there_is_no_verdict() -> None:
    without = [
        record.model_copy(update={"readings": tuple(r for r in record.readings if r.name != "accuracy")})
        for record in records()
    ]
    assert list(judge_claim(without, CLAIM)) == []
