"""What was done to captured messages, whatever it was."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from leaktight.core.channel import Belief, Channel, Mask, Stage
from leaktight.core.defence import Defence, Strength
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.task import Task


class AsCaptured(Defence):
    """Messages as they were captured: whatever their senders did about leakage, if anything, is in them already.

    It names the rows of an audit of captures, and cannot be used anywhere else. Nobody knows what was done, so its
    channel is not complete: it says only that an entry of zero may have been left out, as top-k sharing and pruning do.

    Example:
        >>> str(AsCaptured())
        'as_captured'

    Differs from the paper: there is none.
    """

    kind: Literal["as_captured"] = "as_captured"
    strength: ClassVar[Strength | None] = None
    is_public: ClassVar[bool] = False

    @property
    def states_channel(self) -> bool:
        """Never: nobody knows what was done."""
        return False

    def channel(self, task: Task) -> Channel:
        """State that entries of zero are small, and may not be zero."""
        return Channel(message=(_ZerosLeftOut(),), complete=False)

    def on_message(self, message: Message, local: Local) -> Message:
        """Refuse: nobody knows what was done."""
        raise Refusal("as_captured stands for what senders did to captured messages, and cannot be applied to others.")


@dataclasses.dataclass(frozen=True)
class _ZerosLeftOut(Stage):
    """Entries of zero were at most as large as the smallest other one of their tensor, ranked singly or with others."""

    def push(self, belief: Belief) -> Belief:
        return dataclasses.replace(belief, masks={name: Mask((name,), count=0) for name in belief.means})
