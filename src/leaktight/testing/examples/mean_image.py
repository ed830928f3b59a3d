"""Mean image: answer what public examples look like on average, whatever was sent."""

from __future__ import annotations

from typing import ClassVar, Literal

from leaktight.core.attack import Attack, Principle, Reconstruction
from leaktight.core.errors import Refusal
from leaktight.core.random import Stream
from leaktight.core.threat import Knows, View


class MeanImage(Attack):
    """Answer the mean of public examples, for whoever wants to see how an attack is written. It reads no message."""

    kind: Literal["example_mean_image"] = "example_mean_image"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs"})
    simple: ClassVar[bool] = True
    principle: ClassVar[Principle] = "learned"

    @property
    def needs(self) -> frozenset[Knows]:
        """Public examples."""
        return frozenset({Knows.AUXILIARY})

    def run(self, view: View, rng: Stream) -> Reconstruction:
        """Answer as many copies of the mean as there are examples behind each message."""
        if view.auxiliary is None:
            raise Refusal("The mean image needs public examples. Grant `auxiliary` in the threat model.")
        mean = view.auxiliary.inputs.mean(0)
        exchanges = view.exchanges()
        inputs = tuple(mean.expand(int(one.sent.facts["examples"]), *mean.shape) for one in exchanges)
        return Reconstruction(tuple(one.sent.key for one in exchanges), inputs)
