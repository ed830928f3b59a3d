"""Verification: the chosen policy is attacked by the strongest attacker, and a model is trained with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import torch

from leaktight.attacks.presets import preset
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.record import Record, Status
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences.transformation import Transformation
from leaktight.findings.sentence import cost_of
from leaktight.findings.summary_file import write_summary
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Adam
from leaktight.learning.protocol import FedSGD
from leaktight.metrics import PSNR, SearchGap
from leaktight.plans.plan import Grid, Plan, Stage
from leaktight.running.scheduler import Progress, run
from leaktight.running.worker_pool import Workers
from leaktight.search.settings import Search
from leaktight.statistics.interval import Interval
from leaktight.statistics.paired import paired_difference
from leaktight.statistics.pooling import minus
from leaktight.transforms.policy import Policy

ATTACK = "strongest"
ROUNDS, VICTIMS, PARTICIPANTS = 200, 8, 4
MOMENTS: dict[Stage, str] = {"initial": "before the training", "end": "after it"}


@dataclasses.dataclass(frozen=True)
class Attacked:
    """What the strongest attacker finds at one moment of a training, of the images as their owner has them.

    Args:
        stage: the moment.
        plain: PSNR in dB without a policy.
        policy: PSNR with it.
        chance: PSNR of the best answer that needs no message.
        hidden: how much less PSNR is with the policy.
        interval: its 95 % interval, over the same images.
    """

    stage: Stage
    plain: float
    policy: Reading
    chance: float
    hidden: float
    interval: Interval

    def __str__(self) -> str:
        """Say so in a sentence or two."""
        low, high = self.interval
        ends = "" if low is None or high is None else f" ({low:.1f} to {high:.1f})"
        said = (
            f"Attacked {MOMENTS[self.stage]}: PSNR {self.plain:.1f} dB without the policy, {self.policy.value:.1f} "
            f"with it, {self.chance:.1f} by the best answer that needs no message."
        )
        if self.plain <= self.chance and not self.policy.beats_chance():
            return f"{said} The attack failed even without the policy, so this says nothing of what it hides."
        said = f"{said} It hides {self.hidden:.1f} dB{ends}."
        return f"{said} Images are still rebuilt." if self.policy.beats_chance() else said


@dataclasses.dataclass(frozen=True)
class Verification:
    """What a policy hides and costs.

    Args:
        attacked: what was found at each moment; a cell that failed has none.
        accuracy: the accuracy of a model that was trained with the policy.
        plain_accuracy: that of one without.
        cost: how much is lost, with its interval.
        failed: why cells failed or were refused.
    """

    attacked: tuple[Attacked, ...]
    accuracy: float | None
    plain_accuracy: float | None
    cost: Reading | None
    failed: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """Say what was found."""
        said = [str(each) for each in self.attacked]
        if self.cost is not None and self.plain_accuracy is not None and self.accuracy is not None:
            said.append(
                f"The price: {cost_of(self.cost)}; accuracy {100 * self.plain_accuracy:.1f} % without, "
                f"{100 * self.accuracy:.1f} % with the policy."
            )
        return [*said, *(f"Not measured: {reason}" for reason in self.failed)]


def make_plan(search: Search, policy: Policy, rounds: int = ROUNDS, victims: int = VICTIMS) -> Plan:
    """Return the audit that verifies a policy.

    Args:
        search: whose data and network.
        policy: what is verified.
        rounds: how long models are trained.
        victims: how many images are attacked at each moment.
    """
    attack = preset(ATTACK)
    return Plan(
        title=f"Verification of {policy}",
        scenarios={
            "1": Federated(
                data=search.data,
                model=search.model,
                normalise=search.normalise,
                participants=PARTICIPANTS,
                protocol=FedSGD(optimiser=Adam(learning_rate=0.003)),
                rounds=rounds,
                device=search.device,
            )
        },
        defences=(Transformation(policy=policy),),
        probes={
            ATTACK: Attempt(
                attack=attack,
                threat=ThreatModel(knows=frozenset({Knows.LOCAL_STEPS}) | attack.wants),
                metrics=(PSNR(), SearchGap()),
            )
        },
        grid=Grid(seeds=(search.seed,), batch_sizes=(1,), stages=tuple(MOMENTS), victims=victims),
    )


def verify(
    search: Search,
    policy: Policy,
    folder: Path,
    workers: Workers = 1,
    progress: Progress | None = None,
    rounds: int = ROUNDS,
    victims: int = VICTIMS,
) -> Verification:
    """Attack a policy and train with it; finished parts are kept in the folder, which `leaktight report` reads.

    Args:
        search: whose data and network.
        policy: what is verified.
        folder: the folder of the audit.
        workers: how many processes, or who else does the work.
        progress: called with how far it is.
        rounds: how long models are trained.
        victims: how many images are attacked at each moment.
    """
    records = run(make_plan(search, policy, rounds, victims), folder, workers=workers, progress=progress)
    write_summary(folder)
    return read_verification(records)


def read_verification(records: Sequence[Record]) -> Verification:
    """Return what the records of such an audit say."""
    measured = [record for record in records if record.cell.purpose == "measure"]
    done = {
        (record.cell.defence.kind, record.cell.stage): record for record in measured if record.status is Status.DONE
    }
    attacked = []
    for stage in MOMENTS:
        pair = [_psnr(done.get((kind, stage))) for kind in ("none", "transformation")]
        plain, changed = pair
        if plain is not None and changed is not None:
            hidden, interval = paired_difference(torch.tensor(plain.each), torch.tensor(changed.each))
            attacked.append(Attacked(stage, plain.value, changed, changed.chance or 0.0, hidden, interval))
    accuracies = [_find(done.get((kind, "end")), "accuracy") for kind in ("none", "transformation")]
    without, under = accuracies
    return Verification(
        attacked=tuple(attacked),
        accuracy=None if under is None else under.value,
        plain_accuracy=None if without is None else without.value,
        cost=None if without is None or under is None else minus(without, under, "accuracy_loss"),
        failed=tuple(dict.fromkeys(record.reason for record in measured if record.status is not Status.DONE)),
    )


def _psnr(record: Record | None) -> Reading | None:
    return _find(record, PSNR().kind, "raw")


def _find(record: Record | None, name: str, against: str | None = None) -> Reading | None:
    """Return a reading of the attacker's answer."""
    readings = record.readings if record is not None else ()
    return next((r for r in readings if r.name == name and r.against == against and not r.by), None)
