"""Cells that check the audit itself.

The answer of one is known. In the others, one for each probe, there is nothing to find.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torch import Tensor

from leaktight.attacks.embedding_scores import EmbeddingAttack
from leaktight.attacks.label_attack import CUT, LabelAttack
from leaktight.attacks.strongest import Strongest
from leaktight.core.attack import Attack
from leaktight.core.defence import Undefended
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.metric import Metric
from leaktight.core.party import Party, Seat
from leaktight.core.probe import Attempt, Probe
from leaktight.core.random import Stream, normal_like
from leaktight.core.record import Cell
from leaktight.core.run import Run
from leaktight.core.scenario import Enter, Scenario


def control_cells(scenario: Scenario, seeds: Sequence[int], victims: int, metrics: Sequence[Metric]) -> list[Cell]:
    """Return for each seed the cell that must succeed: its answer follows from the message by arithmetic alone."""
    control = scenario.control()
    if control is None:
        return []
    attack = Attack.model_validate({"kind": control.attack})
    probe = Attempt(attack=attack, threat=control.threat, metrics=tuple(metrics))
    return [
        Cell(
            scenario=control.scenario,
            defence=Undefended(),
            probe=probe,
            batch_size=control.batch_size,
            victims=victims,
            seed=seed,
            purpose="control",
            label=attack.kind,
        )
        for seed in seeds
    ]


def null_cells(measured: Sequence[Cell]) -> list[Cell]:
    """Return each attack's first cell at the scenario's baseline again, to be run on noise.

    There is one for each scenario and seed. Nothing may be found in it.
    """
    first: dict[tuple[str, str, int], Cell] = {}
    for cell in measured:
        if cell.defence == cell.scenario.baseline and isinstance(cell.probe, Attempt):
            first.setdefault((cell.scenario.key, cell.label, cell.seed), cell)
    return [cell.model_copy(update={"purpose": "null", "probe": at_the_message(cell.probe)}) for cell in first.values()]


def at_the_message(probe: Probe) -> Probe:
    """Return a probe that looks at the message alone, as on noise.

    At layers before the cut the attacker's own inputs have a part in what it finds. A bottom model has learned from
    messages that came before the noise; only its initial parameters have not.
    """
    if not isinstance(probe, Attempt):
        return probe
    attack = probe.attack
    if isinstance(attack, Strongest):
        members = {name: _by_message(member) for name, member in attack.suite().items()}
        changed: Attack = attack.model_copy(update={"members": members}) if members != attack.suite() else attack
    else:
        changed = _by_message(attack)
    return probe if changed == attack else probe.model_copy(update={"attack": changed})


def _by_message(attack: Attack) -> Attack:
    if isinstance(attack, LabelAttack) and attack.layer != CUT:
        return attack.model_copy(update={"layer": CUT})
    if isinstance(attack, EmbeddingAttack):
        return attack.model_copy(update={"bottom": "initial"})
    return attack


def nullify(run: Run, rng: Stream) -> Run:
    r"""Return a run whose honest messages carry noise instead of anything about the examples behind them.

    Each tensor \(g\) is replaced by \(\lVert g \rVert_2 \cdot z / \lVert z \rVert_2\) with \(z \sim N(0, I)\): same
    shape, same norm, no content. Parameters that were handed out stay as they are, but where rounds follow on each
    other: there each change of them, which tells a participant what the others sent, is replaced in the same way.

    Args:
        run: what happened.
        rng: where the noise comes from.
    """
    # Where nobody knows the truth, every message that can be attacked is replaced.
    honest = set(run.truths) or {
        message.key for message in run.transcript if message.kind in (Kind.GRADIENT, Kind.UPDATE)
    }
    replaced = {id(message): _noise(message, rng) for message in run.transcript if message.key in honest}
    by_key = {message.key: message for message in replaced.values()}
    replaced |= _random_steps(run, rng)
    return dataclasses.replace(
        run,
        transcript=tuple(replaced.get(id(message), message) for message in run.transcript),
        truths={
            key: dataclasses.replace(ground_truth, sent=by_key[key]) if key in by_key else ground_truth
            for key, ground_truth in run.truths.items()
        },
    )


def among_noise(enter: Enter, rng: Stream) -> Enter:
    """Return who sits where in a training run in which honest parties send noise.

    They send it in place of what they learned, as in `nullify`.

    An attacker who sits in a training run learns from all its rounds, so noise in the messages that are observed at its
    end is not enough: in this one there was nothing to learn.

    Args:
        enter: who takes the other seats.
        rng: where the noise comes from.
    """

    def take(seat: Seat) -> Party:
        party = enter(seat)
        return _Noisy(party, rng) if party is seat.honest else party

    return take


@dataclasses.dataclass(frozen=True)
class _Noisy:
    """An honest party whose every answer is replaced by noise of the same norm."""

    honest: Party
    rng: Stream

    @property
    def name(self) -> str:
        return self.honest.name

    def respond(self, message: Message) -> Message:
        return _noise(self.honest.respond(message), self.rng)

    def close(self) -> Message | None:
        return self.honest.close()


def _noise(message: Message, rng: Stream) -> Message:
    return message.map(lambda tensor: _same_norm(tensor, rng))


def _random_steps(run: Run, rng: Stream) -> dict[int, Message]:
    """Return parameters that follow on those of the round before.

    They are moved as far as they were, but in a random direction.
    """
    last: dict[str, Message] = {}
    found: dict[int, Message] = {}
    moved: dict[int, Tensors] = {}  # All participants of a round are handed one copy.
    for message in run.transcript:
        if message.kind is not Kind.PARAMETERS:
            continue
        before, last[message.receiver] = last.get(message.receiver), message
        if before is None or before.round + 1 != message.round or before.tensors is message.tensors:
            continue
        if id(message.tensors) not in moved:
            start = found.get(id(before), before).tensors
            moved[id(message.tensors)] = {
                name: start[name] + _same_norm(tensor - before.tensors[name], rng)
                for name, tensor in message.tensors.items()
            }
        found[id(message)] = dataclasses.replace(message, tensors=moved[id(message.tensors)])
    return found


def _same_norm(tensor: Tensor, rng: Stream) -> Tensor:
    noise = normal_like(tensor, rng)
    scaled: Tensor = noise * (tensor.norm() / noise.norm().clamp_min(1e-30))
    return scaled
