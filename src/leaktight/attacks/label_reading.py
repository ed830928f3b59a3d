"""Label reading: the labels alone, straight off the last layer."""

from __future__ import annotations

from typing import ClassVar, Literal

from leaktight.attacks.label import read_labels
from leaktight.attacks.replay import Replay
from leaktight.core.attack import Attack, Labels, Principle
from leaktight.core.errors import Refusal
from leaktight.core.random import Stream
from leaktight.core.threat import View


class LabelReading(Attack):
    r"""Read the labels behind every message off the gradient of the public head, without any search.

    With cross entropy the head's bias has the gradient \(g_c = mean(p_c) - n_c / n\), so the class of a single example is the one
    negative entry, and of a batch the counts follow up to the mean prediction (`attacks.label.read_labels`). This is the cheapest
    membership attack in the sense of Fan et al.: a defence that works on the body alone, as a private head does, leaves it untouched.

    What it needs: a model with a linear head whose gradient is shared, and for an update the local steps. It looks at the public
    task, whatever the defence made of it on the participant's side.

    Example:
        >>> LabelReading().simple, sorted(LabelReading.claims)
        (True, ['labels'])

    Differs from the paper: Fan et al. take the labels that the reconstruction attack finds along the way; they are read directly here.

    References: Zhao et al. 2020, iDLG, Eq. 3 and 4; Fan et al. 2020, Algorithm 5 (membership attack).
    """

    kind: Literal["label_reading"] = "label_reading"
    claims: ClassVar[frozenset[str]] = frozenset({"labels"})
    principle: ClassVar[Principle] = "algebra"
    simple: ClassVar[bool] = True

    def run(self, view: View, rng: Stream) -> Labels:
        """Answer every gradient and update in view."""
        exchanges = view.exchanges()
        if not exchanges:
            raise Refusal("Label reading needs a shared gradient or update. The view holds none.")
        return Labels(
            keys=tuple(exchange.sent.key for exchange in exchanges),
            labels=tuple(
                read_labels(Replay.of(view.task, exchange.sent), exchange.parameters, exchange.sent.tensors, rng)
                for exchange in exchanges
            ),
        )
