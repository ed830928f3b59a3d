"""Mutual information: how much each layer's activations reveal about which input went in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.errors import Refusal
from leaktight.core.metric import Quantity, Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream
from leaktight.core.run import Run
from leaktight.metrics.kernel_information import information_bounds, squared_distances
from leaktight.probes.layer_outputs import LayerOutputs
from leaktight.probes.public import latest, public_examples

# About how much memory kept activations may take, and of how many examples they are compared at once.
_BYTES, _TOGETHER = 384 * 2**20, 64


class MutualInformation(Probe):
    r"""Bound what each layer's activations reveal about their input, on public examples at the latest parameters.

    Activations are a function of their input, so that without noise they tell everything. With noise of deviation
    \(\sigma\) in each unit and X uniform over N examples, `mutual_information_lower` and `mutual_information_upper` are
    kernel bounds on \(I(X; T_l)\) in bits (see `information_bounds`), and `mutual_information_lower_share` and
    `mutual_information_upper_share` those as shares of \(\log_2 N\), which is all that N examples can tell. The
    activations \(t_l\) are those at the output of each layer with weights, after its activation function if one follows
    directly, before any pooling; the head's are its scores, without softmax.

    Activations say what is passed forward. Gradients, which are what is shared, may give away more or less.

    Args:
        samples: N, how many public examples at most, at least 2. More tell layers apart that few do not; the time grows
            as \(N^2\), and so does memory, by \(8 N^2\) bytes for each layer.
        noise: \(\sigma\), above 0; the larger, the less is told. The default has variance 0.1. Saxe et al. take 0.1 and
            0.001, for networks with a few dozen units; in wide layers either leaves hardly a doubt, and both bounds are
            near \(\log_2 N\).
        scaled: whether \(\sigma\) is in units of each layer's own deviation (the root of the mean variance over its
            units), so that layers with large activations do not tell more by that alone. Else in the activations'
            units, as in the literature.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import toy_run
        >>> found = MutualInformation(samples=16).read(toy_run(), stream(0, "information")).readings
        >>> [(reading.name, reading.layer) for reading in found][:2]
        [('mutual_information_lower', 'body.1'), ('mutual_information_upper', 'body.1')]
        >>> all(0 <= reading.value <= 4 for reading in found)
        True

    Differs from the paper: it shows the upper bound as a share alone, on all of 9315 examples, and does not say its
    noise. Its equation lacks the exponential. `scaled` is ours.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 9.1,
        eq. 11 and 12. Saxe et al., On the Information Bottleneck Theory of Deep Learning, 2018, for the noise.
        Kolchinsky and Tracey, Estimating Mixture Entropy with Pairwise Distances, 2017.
    """

    kind: Literal["mutual_information"] = "mutual_information"
    samples: int = Field(1000, ge=2)
    noise: float = Field(0.1**0.5, gt=0)
    scaled: bool = False

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        return {
            "mutual_information_lower": Quantity("mutual information, lower bound", "bits", leaks="high"),
            "mutual_information_upper": Quantity("mutual information, upper bound", "bits", leaks="high"),
        }

    def read(self, run: Run, rng: Stream) -> Finding:
        """Bound the information in every layer's activations."""
        outputs = LayerOutputs(run.public, latest(run, self.kind))
        inputs = public_examples(run, self.kind, self.samples, rng).inputs
        count = len(inputs)
        if count < 2:
            raise Refusal(f"{self.kind} needs at least two public examples. This run has {count}.")
        readings = []
        for layer, (squared, width) in layer_distances(outputs, inputs).items():
            # The mean squared distance of all pairs is twice the sum of the units' variances.
            deviation = math.sqrt(squared.mean().item() / (2 * width)) if self.scaled else 1.0
            bounds = information_bounds(squared, self.noise * deviation) if deviation else (0.0, 0.0)
            for scale, suffix in ((1.0, ""), (math.log2(count), "_share")):
                for end, bits in zip(("lower", "upper"), bounds, strict=True):
                    name = f"{self.kind}_{end}{suffix}"
                    readings.append(
                        Reading(name=name, value=bits / scale, n=count, chance=0.0, leaks="high", layer=layer)
                    )
        return Finding(tuple(readings))


def layer_distances(outputs: LayerOutputs, inputs: Tensor, memory: int = _BYTES) -> dict[str, tuple[Tensor, int]]:
    """Return the squared distance between the activations of each two inputs in each layer, and how many units it has.

    Activations of as many inputs as fit are kept and compared with those of all that come after, which are made anew
    each time.

    Args:
        outputs: what makes activations.
        inputs: N examples.
        memory: about how many bytes kept activations may take; those of one input are kept at least.

    Returns:
        By layer N rows of N distances, and the number of units.
    """
    count = len(inputs)
    first = outputs(inputs[:1])
    kept = max(1, memory // sum(rows.nbytes for rows in first.values()))
    together = min(_TOGETHER, -(-kept // 2))
    distances = {layer: torch.zeros(count, count, dtype=torch.float64) for layer in first}
    for start in range(0, count, kept):
        own: dict[str, list[Tensor]] = {layer: [] for layer in first}
        for begin in range(start, count, together):
            columns = slice(begin, begin + together)
            others = outputs(inputs[columns])
            for layer, squared in distances.items():
                if begin < start + kept:
                    own[layer].append(others[layer][: start + kept - begin])
                for place, part in enumerate(own[layer]):
                    rows = slice(start + place * together, start + place * together + len(part))
                    between = squared_distances(part, others[layer])
                    squared[rows, columns], squared[columns, rows] = between, between.T
    return {layer: (squared, first[layer].shape[1]) for layer, squared in distances.items()}
