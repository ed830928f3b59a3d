"""Perturbation: how far a defence moved the message itself, whatever an attack makes of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import ClassVar, Literal

import torch
from scipy.special import bdtr
from torch import Tensor

from leaktight.core.attack import Guess
from leaktight.core.message import Tensors, layer_of
from leaktight.core.metric import MESSAGE, Metric, Quantity, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.comparison import share_interval
from leaktight.statistics.interval import Interval, bootstrap

RATIO_CAP = 2.0**23
"""The ratio of an unchanged message: in single precision a smaller change looks like none."""
RATIO, BODY_RATIO, BIAS_RATIO = "gradient_ratio", "body_ratio", "bias_ratio"


def magnitudes(plain: Tensors, sent: Tensors) -> tuple[float, float]:
    r"""Return \(\lVert B \rVert\) and \(\lVert E \rVert\): the sizes of an undefended message and of what was added.

    Both are Euclidean norms over all tensors of the undefended message. One that was withheld counts as zeros: this is
    what the server makes of it.

    Args:
        plain: what would have been sent without a defence.
        sent: what was sent.

    Example:
        >>> magnitudes({"bias": torch.tensor([3.0, 4.0])}, {"bias": torch.tensor([3.0, 6.0]), "more": torch.ones(1)})
        (5.0, 2.0)
        >>> magnitudes({"bias": torch.tensor([3.0, 4.0])}, {})
        (5.0, 5.0)
    """
    pairs = [(tensor.double(), _tensor_or_zeros(sent, name, tensor).double()) for name, tensor in plain.items()]
    size = math.sqrt(sum(before.square().sum().item() for before, _ in pairs))
    return size, math.sqrt(sum((after - before).square().sum().item() for before, after in pairs))


def gradient_ratio(plain: Tensors, sent: Tensors) -> float:
    r"""Return \(\lVert B \rVert / \lVert E \rVert\), kept between 2^-23 and 2^23.

    Example:
        >>> plain = {"bias": torch.tensor([3.0, 4.0])}
        >>> gradient_ratio(plain, {"bias": torch.tensor([3.0, 6.0])}), gradient_ratio(plain, plain)
        (2.5, 8388608.0)
    """
    size, change = magnitudes(plain, sent)
    return RATIO_CAP if change == 0 else min(max(size / change, 1 / RATIO_CAP), RATIO_CAP)


def is_of_body(name: str) -> bool:
    """Return whether a tensor is of the body: of any layer but the public head.

    Example:
        >>> is_of_body("body.linear1.bias"), is_of_body("head.bias")
        (True, False)
    """
    return layer_of(name).split(".")[0] != "head"


def is_bias_of_body(name: str) -> bool:
    """Return whether a tensor is the bias of a layer of the body.

    Example:
        >>> is_bias_of_body("body.linear1.bias"), is_bias_of_body("body.linear1.weight")
        (True, False)
    """
    return is_of_body(name) and name.rpartition(".")[2] == "bias"


_PARTS: Mapping[str, Callable[[str], bool]] = {
    RATIO: lambda name: True,
    BODY_RATIO: is_of_body,
    BIAS_RATIO: is_bias_of_body,
}
"""Over which tensors of a message each ratio is taken."""


def _tensor_or_zeros(sent: Tensors, name: str, plain: Tensor) -> Tensor:
    """Return a tensor as the server takes it: zeros for one that was withheld."""
    return sent[name] if name in sent else torch.zeros_like(plain)


@dataclasses.dataclass(frozen=True)
class LinearSystem:
    r"""The equations \(B x = W\) that a linear layer's gradient gives for its input, and their perturbation.

    \(B\) is the diagonal matrix of the bias gradient, every entry repeated for each input; \(W\) is the weight gradient
    as a vector.

    Args:
        bias: the diagonal of B, each entry once.
        weight: W, one row for each entry of the bias.
        bias_change: the diagonal of E_B.
        weight_change: E_W.
    """

    bias: Tensor
    weight: Tensor
    bias_change: Tensor
    weight_change: Tensor

    @staticmethod
    def of(plain: Tensors, sent: Tensors, inputs: int) -> LinearSystem | None:
        """Return the system of the first layer that has weight and bias; None if an example is not its solution.

        It is not where that layer is a convolution, or sees other than the whole example, or has no bias gradient. What
        was withheld counts as zeros: the condition fails then, and the theorem is silent.

        Args:
            plain: what would have been sent without a defence.
            sent: what was sent.
            inputs: how many numbers an example has.
        """
        for name, weight in plain.items():
            partner = f"{name.removesuffix('weight')}bias"
            whole = name.endswith("weight") and weight.dim() > 1 and partner in plain
            if whole and plain[partner].shape == weight.shape[:1]:
                if weight.dim() != 2 or weight.shape[1] != inputs:
                    return None
                # The index set I: a row whose bias gradient is zero says nothing about the input, and any other one
                # does.
                known = plain[partner] != 0
                bias, rows = plain[partner][known].double(), weight[known].double().flatten(1)
                sent_bias = _tensor_or_zeros(sent, partner, plain[partner])[known].double()
                sent_rows = _tensor_or_zeros(sent, name, weight)[known].double().flatten(1)
                return LinearSystem(bias, rows, sent_bias - bias, sent_rows - rows) if known.any() else None
        return None

    def condition(self) -> float:
        r"""Return \(\lVert B^{-1} E_B \rVert\), the largest relative change of a bias entry.

        Example:
            >>> bias, added = torch.tensor([1.0, -4.0]), torch.tensor([0.5, 1.0])
            >>> system = LinearSystem(bias, torch.ones(2, 3), added, torch.zeros(2, 3))
            >>> system.condition()
            0.5
        """
        return (self.bias_change / self.bias).abs().max().item()

    def bound(self) -> float:
        r"""Return the bound on the relative error of the solution; infinite where the condition fails.

        .. math:: \frac{\kappa(B)}{1 - \lVert B^{-1} E_B \rVert}
            \left( \frac{\lVert E_B \rVert}{\lVert B \rVert} + \frac{\lVert E_W \rVert}{\lVert W \rVert} \right)
        """
        condition = self.condition()
        size = float(self.weight.norm())
        if condition >= 1 or size == 0:
            return math.inf
        smallest, largest = (float(entry) for entry in self.bias.abs().aminmax())
        relative = self.bias_change.abs().max().item() / largest + float(self.weight_change.norm()) / size
        return largest / smallest / (1 - condition) * relative


class Perturbation(Metric):
    r"""How large a message is compared with what the defence added to it, and whether the paper's theorem applies.

    With \(B\) what would have been sent without a defence for the same raw examples, and \(E\) = sent - \(B\), where a
    tensor that was withheld counts as zeros, there are up to five readings. None of them is about leakage by itself.

    - `bias_ratio`: \(\lVert B \rVert / \lVert E \rVert\) over the biases of all layers but the head, the abscissa of
      the paper's trade-off curves; `body_ratio` over all tensors of these layers; `gradient_ratio` over the whole
      message, also a public head that a defence may never touch. The value is the geometric mean over messages: it is
      the mean on the logarithmic axis on which the ratio is drawn, the same for a ratio and its inverse, and not ruled
      by the one message that was hardly touched. Each message's ratio is kept between 2^-23 and 2^23. There is none if
      these tensors were changed in no message at all.
    - `theorem_condition`: the share of messages with \(\lVert B^{-1} E_B \rVert < 1\), where B is the diagonal matrix
      of the bias gradient of the first layer, without its zero entries (rectified units that are off). Only where the
      example solves that layer's system: for one step on one example, and a linear layer with bias that sees all of it.
    - `theorem_bound`: the median, over messages where that holds, of

      .. math:: \frac{\kappa(B)}{1 - \lVert B^{-1} E_B \rVert}
          \left( \frac{\lVert E_B \rVert}{\lVert B \rVert} + \frac{\lVert E_W \rVert}{\lVert W \rVert} \right) .

      Norms of diagonal matrices are spectral (the largest entry), those of the weight gradient Euclidean over all
      entries. There is none if the condition holds nowhere.

    The bound limits from above the relative error of solving \(B x = W\) with what was sent, as the layer sees the
    example. For larger batches each row of the solution is a mixture of examples. Where the condition fails the theorem
    is silent: attacks may succeed all the same.

    Differs from the paper: the ratio is also taken over more than biases, for defences that leave these alone; of the
    biases the paper does not say which count; the mean is geometric; the index set I is all rows with a bias gradient.
    A convolution, unrolled as in Fig. 8, is a linear layer with an output for each position, whose system has a bias
    gradient for each of these: only their sum over positions is ever sent, so nobody holds that system, and the theorem
    is not read for it. The paper reads a failed condition as a guarantee against attacks, which the theorem does not
    give.

    Example:
        >>> Perturbation().claim
        'message'

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        section 2.2, theorems 2.2 and 5.4, appendix A; the ratio in section 4.2 and figure 5.
    """

    kind: Literal["perturbation"] = "perturbation"
    claim: ClassVar[str] = MESSAGE
    leaks: ClassVar[None] = None

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        return {
            RATIO: Quantity("gradient over perturbation"),
            BODY_RATIO: Quantity("gradient over perturbation, body"),
            BIAS_RATIO: Quantity("gradient over perturbation, biases"),
            "theorem_condition": Quantity("theorem 2.2 holds (share)", "%", digits=1),
            "theorem_bound": Quantity("bound of theorem 2.2"),
        }

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return what can be said of the messages; nothing where nobody knows what would have been sent undefended."""
        known = [
            (ground_truth, ground_truth.plain.tensors, ground_truth.sent.tensors)
            for ground_truth in truth
            if ground_truth.plain is not None
        ]
        # Nothing can be said of a training run that diverged.
        finite = [each for each in known if all(map(math.isfinite, magnitudes(*each[1:])))]
        pairs = [(plain, sent) for _, plain, sent in finite]
        systems = [
            system
            for ground_truth, plain, sent in finite
            if _is_of_one_example(ground_truth)
            and (system := LinearSystem.of(plain, sent, math.prod(ground_truth.task.shape))) is not None
        ]
        ratios = [self._ratio(name, belongs, pairs, rng) for name, belongs in _PARTS.items()]
        return (*(ratio for ratio in ratios if ratio is not None), *_theorem(systems))

    def _ratio(
        self, name: str, belongs: Callable[[str], bool], pairs: Sequence[tuple[Tensors, Tensors]], rng: Stream
    ) -> Reading | None:
        """Return the ratio over the tensors that belong to it; None if there are none, or none was ever changed."""
        parts = [({key: tensor for key, tensor in plain.items() if belongs(key)}, sent) for plain, sent in pairs]
        if not any(magnitudes(*part)[1] for part in parts):
            return None
        each = [gradient_ratio(*part) for part in parts]
        logs = torch.tensor(each, dtype=torch.float64).log()
        interval = bootstrap(logs, stream(rng.initial_seed(), "interval", self.kind))
        return _reading(name, logs.mean().exp().item(), _exponential(interval), each)


def _is_of_one_example(ground_truth: GroundTruth) -> bool:
    """Return whether a message is of one step on one example."""
    return len(ground_truth.raw) == 1 and ground_truth.sent.facts.get("local_steps", 1) == 1


def _theorem(systems: Sequence[LinearSystem]) -> list[Reading]:
    if not systems:
        return []
    holds = [float(system.condition() < 1) for system in systems]
    interval = share_interval(torch.tensor(holds), torch.arange(len(holds)))
    readings = [_reading("theorem_condition", sum(holds) / len(holds), interval, holds)]
    bounds = [bound for system in systems if math.isfinite(bound := system.bound())]
    return (
        [*readings, _reading("theorem_bound", median(bounds), median_interval(bounds), bounds)] if bounds else readings
    )


def median_interval(values: Sequence[float]) -> Interval:
    r"""Return the 95 % interval of a median between two of the values, for any distribution; it needs six values.

    With the values in order it runs from the k-th to the k-th from the end, for the largest k with
    \(\Pr[Bin(n, 1/2) < k] \le 0.025\).

    Example:
        >>> median_interval([5.0, 1.0, 4.0, 2.0, 3.0, 6.0]), median_interval([1.0, 2.0])
        ((1.0, 6.0), (None, None))
    """
    ordered = sorted(values)
    tails = [float(bdtr(place, len(ordered), 0.5)) for place in range(len(ordered))]
    place = sum(tail <= 0.025 for tail in tails)
    return (ordered[place - 1], ordered[-place]) if place else (None, None)


def _exponential(interval: Interval) -> Interval:
    low, high = interval
    return (None, None) if low is None or high is None else (math.exp(low), math.exp(high))


def _reading(name: str, value: float, interval: Interval, each: Sequence[float]) -> Reading:
    low, high = interval
    if low is not None and high is not None:
        # The exponential of a logarithm may differ in the last bit.
        low, high = min(low, value), max(high, value)
    return Reading(name=name, value=value, low=low, high=high, n=len(each), against="raw", each=tuple(each))
