"""Taking part: connect, converse, and connect again until the training is done."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from leaktight.core.errors import LeaktightError
from leaktight.core.metric import Reading
from leaktight.core.private import check_writable, lock_file
from leaktight.learning.boundary import LABEL_PARTY
from leaktight.wire.door import Door, open_door
from leaktight.wire.fault import Lost, PeerFault, Rejected
from leaktight.wire.feature_side import FeatureSide
from leaktight.wire.label_side import LabelSide
from leaktight.wire.line import Line
from leaktight.wire.settings import PartyFile
from leaktight.wire.side import Side, Watch

PAUSE = 0.2
PARTING = 2.0
Tell = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a party has at the end.

    Args:
        steps: how many steps it took.
        readings: how good the model is on test rows; known to the label party alone.
        sent: bytes over all connections of this process.
        received: likewise.
        seconds: how long this process took part.
        model: where its half of the model lies.
    """

    steps: int
    readings: tuple[Reading, ...]
    sent: int
    received: int
    seconds: float
    model: Path


def take_part(role: str, settings: PartyFile, tell: Tell, watch: Watch | None = None) -> Outcome:
    """Take part in a training as one of its two parties, from wherever the last checkpoint is to the end.

    A connection that ends is made again. What the other party does wrong ends the connection; then the party that listens waits for the
    next one, and the party that connects stops. Nothing that was refused has changed anything.

    Args:
        role: `label-party` or `feature-party`.
        settings: the party's file.
        tell: takes one sentence at a time about what happens.
        watch: called after each step.

    Raises:
        LeaktightError: the training cannot go on; its checkpoints stay as they are.
    """
    path = Path(settings.wire.checkpoint).expanduser()
    check_writable(path)
    # Two processes on one checkpoint would answer two questions with the same noise.
    with lock_file(path.with_name(f"{path.name}.lock")):
        return _take_part(role, settings, tell, watch)


def _take_part(role: str, settings: PartyFile, tell: Tell, watch: Watch | None) -> Outcome:
    side: Side = LabelSide(settings, watch) if role == LABEL_PARTY else FeatureSide(settings, watch)
    door = open_door(settings.wire, side.peer, settings.peer(role))
    since, sent, received = time.monotonic(), 0, 0
    taken, progress = 0, time.monotonic()
    try:
        verb = "Waiting for" if door.listens else "Connecting to"
        tell(f"{verb} {side.peer} at {settings.wire.address}, from step {side.steps[-1]} of {settings.agreement.rounds}.")
        while True:
            line = door.accept()
            try:
                done = _conversed(side, door, line, tell)
            finally:
                # Who connected leaves last, so that what the other one sent has gone out.
                _parted(line)
            sent, received = sent + line.sent, received + line.received
            if done:
                break
            if side.taken > taken or door.listens:
                taken, progress = side.taken, time.monotonic()
            elif time.monotonic() - progress > settings.wire.patience:
                raise LeaktightError(f"{side.peer} was reached again and again, and no step was taken. Look at its messages.")
            time.sleep(PAUSE)
    finally:
        door.stop()
        side.close()
    return Outcome(side.steps[-1], side.readings, sent, received, time.monotonic() - since, side.model_file)


def _conversed(side: Side, door: Door, line: Line, tell: Tell) -> bool:
    """Use one connection for as far as it goes, and return whether the training is done."""
    try:
        side.converse(line)
        return True
    except Lost as error:
        tell(f"{error} {'Waiting for it to come back.' if door.listens else 'Connecting again.'}")
    except PeerFault as error:
        line.fault(str(error))
        if not door.listens:
            raise
        tell(f"Refused: {error}")
    except Rejected as error:
        if not door.listens:
            raise
        tell(str(error))
    except BaseException as error:
        # Its own troubles are none of the other party's business: they might speak of labels.
        line.fault(f"{side.role} has stopped{'' if isinstance(error, LeaktightError) else ' unexpectedly'}.")
        raise
    return False


def _parted(line: Line) -> None:
    """End a line, and give the other side a moment to hear why."""
    line.close()
    line.ended.wait(PARTING)
