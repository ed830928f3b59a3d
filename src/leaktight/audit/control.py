"""Cells that check the audit itself: one whose answer is known, and one for each probe in which there is nothing to find."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import singledispatch

from torch import Tensor

from leaktight.core.attack import Attack
from leaktight.core.defence import Undefended
from leaktight.core.message import Message
from leaktight.core.metric import Metric
from leaktight.core.probe import Attempt
from leaktight.core.random import Stream, normal_like
from leaktight.core.record import Cell
from leaktight.core.run import Run
from leaktight.core.scenario import Scenario
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import FedSGD


@singledispatch
def exposed(scenario: Scenario) -> Scenario | None:
    """Return the scenario in which the analytic attack must be exact, or None if this kind of scenario has none.

    A scenario of a new kind registers its own answer with `exposed.register`.
    """
    return None


@exposed.register
def _(scenario: Federated) -> Scenario:
    # Untrained, because the gradient of a well trained model is small and what is exact drowns in rounding.
    plain = {"kind": "mlp"}
    return Federated.model_validate({**dict(scenario), "model": plain, "protocol": FedSGD(), "rounds": 0})


def control_cells(scenario: Scenario, seeds: Sequence[int], victims: int, metrics: Sequence[Metric]) -> list[Cell]:
    """Return for each seed the cell that must succeed: a batch of one, read off a linear layer with bias."""
    control = exposed(scenario)
    if control is None:
        return []
    probe = Attempt(attack=Attack.model_validate({"kind": "analytic"}), metrics=tuple(metrics))
    return [
        Cell(
            scenario=control, defence=Undefended(), probe=probe, victims=victims, seed=seed, purpose="control", label="analytic"
        )
        for seed in seeds
    ]


def null_cells(measured: Sequence[Cell]) -> list[Cell]:
    """Return each probe's first undefended cell again, for each scenario and seed, to be run on noise: nothing may be found in it."""
    first: dict[tuple[str, str, int], Cell] = {}
    for cell in measured:
        if cell.defence.kind == Undefended().kind:
            first.setdefault((cell.scenario.key, cell.label, cell.seed), cell)
    return [cell.model_copy(update={"purpose": "null"}) for cell in first.values()]


def nulled(run: Run, rng: Stream) -> Run:
    r"""Return a run whose honest messages carry noise instead of anything about the examples behind them.

    Each tensor \(g\) is replaced by \(\lVert g \rVert_2 \cdot z / \lVert z \rVert_2\) with \(z \sim N(0, I)\): same shape,
    same norm, no content. Parameters that were handed out stay as they are.

    Args:
        run: what happened.
        rng: where the noise comes from.
    """
    replaced = {id(message): _noise(message, rng) for message in run.transcript if message.key in run.inside}
    by_key = {message.key: message for message in replaced.values()}
    return dataclasses.replace(
        run,
        transcript=tuple(replaced.get(id(message), message) for message in run.transcript),
        inside={
            key: dataclasses.replace(inside, sent=by_key[key]) if key in by_key else inside
            for key, inside in run.inside.items()
        },
    )


def _noise(message: Message, rng: Stream) -> Message:
    def same_norm(tensor: Tensor) -> Tensor:
        noise = normal_like(tensor, rng)
        scaled: Tensor = noise * (tensor.norm() / noise.norm().clamp_min(1e-30))
        return scaled

    return message.map(same_norm)
