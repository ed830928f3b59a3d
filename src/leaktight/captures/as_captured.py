"""What was done to captured messages, whatever it was."""

from __future__ import annotations

from typing import ClassVar, Literal

from leaktight.core.defence import Defence, Strength
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Message


class AsCaptured(Defence):
    """Messages as they were captured: whatever their senders did about leakage, if anything, is in them already.

    It names the rows of an audit of captures, and cannot be put to work anywhere else.

    Example:
        >>> str(AsCaptured())
        'as_captured'

    Differs from the paper: there is none.
    """

    kind: Literal["as_captured"] = "as_captured"
    strength: ClassVar[Strength | None] = None
    is_public: ClassVar[bool] = False

    def on_message(self, message: Message, local: Local) -> Message:
        """Refuse: nobody knows what was done."""
        raise Refusal("as_captured stands for what senders did to captured messages, and cannot be applied to others.")
