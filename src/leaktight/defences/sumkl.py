"""sumKL: the least noise on cut gradients that hides which class an example has."""

from __future__ import annotations

import math
import sys
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from leaktight.core.channel import Channel
from leaktight.core.defence import Strength
from leaktight.core.errors import InvalidValue
from leaktight.core.label_bound import LabelBound
from leaktight.core.local import Local, Memory
from leaktight.core.message import Message, Tensors
from leaktight.core.task import Task
from leaktight.defences.class_spread import ClassSpread, estimate
from leaktight.defences.cut_gradient import (
    CutDefence,
    Rows,
    as_message,
    gaussian_channel,
    positives,
    rows_of,
    scratch,
    with_rows,
)
from leaktight.defences.divergence import Classes, NoisePair, allowed_sumkl, detection_error, power, sumkl
from leaktight.defences.sumkl_solver import least, strongest

DEFAULT = 0.4


class _Swept:
    """A strength that is the field in use: of the class, and of a defence with a bound, the bound; else the scale."""

    def __get__(self, defence: SumKL | None, owner: type[SumKL]) -> Strength:
        return (
            Strength("bound", "up", None) if defence is None or defence.scale is None else Strength("scale", "up", 0.0)
        )


class SumKL(CutDefence):
    r"""Add the noise to cut gradients that makes positives and negatives hardest to tell apart, for a label party.

    Without it row \(g_i\) of example \(i\) goes out as it is, and its length or direction tells the label \(y_i\); with
    it

    .. math:: \tilde g_i = g_i + n_i, \quad n_i \sim N(0, \Sigma_{y_i}), \quad
        \Sigma_k = \frac{\lambda_1^{(k)} - \lambda_2^{(k)}}{\|\Delta g\|^2} \Delta g \Delta g^T + \lambda_2^{(k)} I,

    where \(\Delta g\) is the difference of the class means in the batch and the four \(\lambda\) minimise

    .. math:: \mathrm{sumKL} = \mathrm{KL}(\tilde P_1 \| \tilde P_0) + \mathrm{KL}(\tilde P_0 \| \tilde P_1)
        \quad \text{subject to} \quad p \, \mathrm{tr} \Sigma_1 + (1 - p) \, \mathrm{tr} \Sigma_0 \le P

    for classes \(N(\bar g_0, u I)\) and \(N(\bar g_1, v I)\); u, v, the means and the share of positives p are the
    batch's. Any detector's mean of false positive and false negative rate is then at least
    \(\tfrac12 - \tfrac14 \sqrt{\mathrm{sumKL}}\). That holds for Gaussian gradients of equal variance in all
    directions, which real ones are
    not: let attacks tell how far it holds.

    Who sees an example in many messages and adds up its scores sees more than in one: noise is drawn anew each time,
    and divergences of independent messages add, so that over T passes through the data

    .. math:: \mathrm{sumKL}_T \le T \, \mathrm{sumKL}, \qquad L_T \ge \tfrac12 - \tfrac14 \sqrt{T \, \mathrm{sumKL}} .

    A bound for one message alone, of 0.4, is 0.05 after 20 passes, and attacks that add up reach an AUC of almost 0.9.
    To keep 0.4 over a training run of 20 passes ask for `bound = 0.4, passes = 20`: each message then gets the noise
    that leaves a twentieth of the divergence, and the model learns accordingly less.

    What the batch does not show comes from the last one that had both classes: of a batch of one class the other
    class's variance, the difference of the means and the share. Before there was one, the other class is taken for the
    mirror image of this one, as it is under the logistic loss where nothing is learned yet. A batch of one class gets
    noise in any case, unless its rows are zero, and no bound is noted for it. Where both classes are there and alike
    enough to meet the bound, no noise is added.

    Where messages really leave, the noise comes from a secret key (docs/secrets.md).

    Args:
        bound: \(L\), the detection error that no detector may fall below, in (0, 0.5); more is stronger. P is then the
            least power that meets it, \(\mathrm{sumKL} \le (2 - 4 L)^2 / T\). 0.4 if neither is given.
        passes: \(T\), over how many messages about each example the bound is to hold, at least 1; more is stronger. As
            many as the training run has passes bounds the whole of it; the default, 1, bounds each message by itself.
            It goes with a bound.
        scale: in place of a bound, the power relative to the squared distance of the means,
            \(P = \text{scale} \cdot \|\Delta g\|^2\), in [0, inf); 0 is off, more is stronger. If the means coincide,
            relative to the larger class's mean squared distance from them.

    Notes, of which larger is worse: on the last message, if it had both classes, `sumkl.before` and `sumkl.after` (the
    largest number stands for infinity) and `sumkl.detection`, one minus the detection error that holds;
    `sumkl.highest_detection` over all such messages; `sumkl.one_class`, how many had one class and therefore no bound.
    Of the whole run so far, `sumkl.run`, the divergences of all messages about an example added up, as often as it was
    sent on average, and `sumkl.run_detection`, one minus the detection error that is left of them. Besides,
    `sumkl.power` on the last message.

    Example:
        >>> from leaktight.core.message import Kind
        >>> from leaktight.core.task import Batch
        >>> labels = (torch.arange(1000) % 10 == 0).long()
        >>> local = Local("label-party", seed=0)
        >>> local.now.batch = Batch(torch.zeros(1000, 1), labels)
        >>> rows = torch.where(labels[:, None] == 1, -0.9, 0.1) * torch.ones(1000, 8)
        >>> message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, {"cut": rows})
        >>> sent = SumKL(bound=0.4).on_message(message, local)
        >>> round(local.notes["sumkl.detection"], 6), round(local.notes["sumkl.power"] / 8, 2)
        (0.6, 6.18)

    Differs from the paper: u belongs to the negatives and v to the positives, as in its objective and proof and not as
    in its text. By the same naming the class that gets no noise across the difference is the one of larger variance. It
    bounds single messages; `passes` is ours. The power is the least that meets the bound, not the first of a growing
    series; the solver is exact (see `sumkl_solver`). Batches of one class are protected, which the published code drops
    or sends raw.

    References:
        Li et al., "Label Leakage and Protection in Two-party Split Learning", 2021, theorem 1, section 3.2 and appendix
        A.1.
    """

    kind: Literal["sumkl"] = "sumkl"
    title: ClassVar[str] = "sumKL"
    strength: ClassVar[Any] = _Swept()
    bound: float | None = Field(default=None, gt=0, lt=0.5)
    scale: float | None = Field(default=None, ge=0)
    # Left out where each message is bounded by itself, so that defences of before it was there keep their keys.
    passes: int = Field(default=1, ge=1, exclude_if=lambda passes: passes == 1)

    @model_validator(mode="before")
    @classmethod
    def _one_goal(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        goals = [name for name in ("bound", "scale") if data.get(name) is not None]
        if len(goals) == 2:
            raise ValueError(
                f"must have a `bound` or a `scale`. Got {data['bound']!r} and {data['scale']!r} instead; leave one out."
            )
        if "scale" in goals and data.get("passes", 1) != 1:
            raise ValueError(
                f"must have a `bound` to keep over `passes`. Got the `scale` {data['scale']!r} instead; leave one out."
            )
        return data if goals else {**data, "bound": DEFAULT}

    @property
    def promise(self) -> Literal["noise"] | None:
        """Noise, unless it is off."""
        return None if self.scale == 0 else "noise"

    @property
    def label_bound(self) -> LabelBound | None:
        """The bound, over the passes that it is for; a scale states none."""
        return None if self.bound is None else LabelBound(self.bound, self.passes)

    def channel(self, task: Task) -> Channel:
        """State nothing of gradients and updates, which it refuses, unless it is off."""
        return Channel(complete=self.scale == 0)

    def cut_channel(self, gradients: Tensors, labels: Tensor) -> Channel:
        """State the Gaussian law of each row's class; of a batch of one class, as that of a party without a past."""
        rows, positive = rows_of(as_message(gradients), self.kind), labels == 1
        if self.scale == 0 or not rows.matrix.numel():
            return Channel()
        estimated = estimate(rows, positive, {})
        noise = self._noise(estimated.classes, {})
        if noise == NoisePair():
            return Channel(complete=estimated.seen)
        extra, across, direction = _law(rows, noise, estimated.difference)
        chosen = positive.long()
        along = extra.sqrt()[chosen][:, None] * direction
        return gaussian_channel(gradients, across[chosen], along, complete=estimated.seen)

    def on_message(self, message: Message, local: Local) -> Message:
        """Add to each row the noise of its class."""
        rows = rows_of(message, self.kind)
        positive = positives(local, len(rows), self.kind).to(rows.matrix.device)
        if self.scale == 0 or not rows.matrix.numel():
            return message
        estimated = estimate(rows, positive, local.memory)
        noise = self._noise(estimated.classes, local.memory)
        sent = message
        if noise != NoisePair():
            sent = with_rows(message, _noisy(rows, positive, noise, estimated.difference, local), self.kind)
        _note(estimated, noise, local, len(rows))
        return sent

    def _noise(self, classes: Classes, memory: Memory) -> NoisePair:
        """Return the noise that these classes need, and remember its power as the next search's start."""
        size = classes.gap or classes.dimensions * max(classes.negatives, classes.positives)
        if self.bound is None:
            return strongest(classes, (self.scale or 0.0) * size)
        allowed = allowed_sumkl(self.bound) / self.passes
        start = memory.get("relative_power")
        noise = least(classes, allowed, None if start is None else start * size)
        if sumkl(classes, noise) > allowed:
            raise InvalidValue(
                f"The `bound` of {self.kind} must leave a detector some chance. Got {self.bound!r} instead; take less."
            )
        if noise != NoisePair():
            memory["relative_power"] = power(classes, noise) / size
        return noise


def _law(rows: Rows, noise: NoisePair, difference: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the variances by class along the difference and in all directions, and the direction of the difference."""
    by_class, device = (noise.negatives, noise.positives), rows.matrix.device
    extra, across = (
        torch.tensor(variances, dtype=torch.float64, device=device)
        for variances in (
            [max(each.along - each.across, 0.0) for each in by_class],
            [max(each.across, 0.0) for each in by_class],
        )
    )
    length = torch.linalg.vector_norm(difference)
    # Classes with one mean have no direction of their own: any will do.
    direction = difference / length if length else torch.eye(1, rows.dimensions, dtype=torch.float64, device=device)[0]
    return extra, across, direction


def _noisy(rows: Rows, positive: Tensor, noise: NoisePair, difference: Tensor, local: Local) -> Tensor:
    """Return the rows with noise along the difference, and in all directions for the class that has noise across it."""
    matrix, by_class = rows.matrix, (noise.negatives, noise.positives)
    extra, _, direction = _law(rows, noise, difference)
    along = local.draws.many_normals((len(rows),), matrix) * extra.sqrt().to(matrix)[positive.long()]
    sent = torch.addr(matrix, along, direction.to(matrix), out=scratch(tuple(matrix.shape), matrix))
    for which, each in enumerate(by_class):
        if each.across > 0:
            local.draws.add_normals(sent, (positive == bool(which)).nonzero()[:, 0], math.sqrt(each.across))
    return sent


def _note(estimated: ClassSpread, noise: NoisePair, local: Local, examples: int) -> None:
    """Note what was there to tell apart and what is left.

    Of a batch of one class this is not known: note only that it was one.
    """
    notes, classes = local.notes, estimated.classes
    notes["sumkl.power"] = power(classes, noise)
    notes["sumkl.one_class"] = notes.get("sumkl.one_class", 0.0) + (not estimated.seen)
    if not estimated.seen:
        for name in ("sumkl.before", "sumkl.after", "sumkl.detection"):
            notes.pop(name, None)
        return
    # A record holds no infinity.
    before, after = (min(sumkl(classes, protection), sys.float_info.max) for protection in (NoisePair(), noise))
    detection = 1 - detection_error(after)
    notes |= {"sumkl.before": before, "sumkl.after": after, "sumkl.detection": detection}
    notes["sumkl.highest_detection"] = max(detection, notes.get("sumkl.highest_detection", detection))
    # Each example is in this share of all messages of this size, be it by passes through the data or by draws.
    share = examples / max(local.now.examples, examples)
    local.memory["run"] = whole = min(local.memory.get("run", 0.0) + share * after, sys.float_info.max)
    notes |= {"sumkl.run": whole, "sumkl.run_detection": 1 - detection_error(whole)}
