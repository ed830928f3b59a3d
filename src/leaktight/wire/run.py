"""Taking part: connect, converse, and connect again until the training run is done."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from leaktight.core.errors import LeaktightError
from leaktight.core.metric import Reading
from leaktight.core.private import check_writable, lock_file
from leaktight.learning.boundary import LABEL_PARTY
from leaktight.wire.connection import Connection
from leaktight.wire.fault import Lost, PeerFault, Rejected
from leaktight.wire.feature_side import FeatureSide
from leaktight.wire.label_side import LabelSide
from leaktight.wire.party_file import PartyFile
from leaktight.wire.side import OnStep, Side
from leaktight.wire.transport import Transport, open_transport

PAUSE = 0.2
PARTING = 2.0
Tell = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class PartyResult:
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


def take_part(role: str, settings: PartyFile, tell: Tell, on_step: OnStep | None = None) -> PartyResult:
    """Take part in a training run as one of its two parties, from the last checkpoint to the end.

    A connection that ends is made again. A fault of the other party ends the connection; then the party that listens
    waits for the next one, and the party that connects stops. Nothing that was refused has changed anything.

    Args:
        role: `label-party` or `feature-party`.
        settings: the party's file.
        tell: takes one sentence at a time about what happens.
        on_step: called after each step.

    Raises:
        LeaktightError: the training run cannot continue; its checkpoints stay as they are.
    """
    path = Path(settings.wire.checkpoint).expanduser()
    check_writable(path)
    # Two processes on one checkpoint would answer two questions with the same noise.
    with lock_file(path.with_name(f"{path.name}.lock")):
        return _take_part(role, settings, tell, on_step)


def _take_part(role: str, settings: PartyFile, tell: Tell, on_step: OnStep | None) -> PartyResult:
    side: Side = LabelSide(settings, on_step) if role == LABEL_PARTY else FeatureSide(settings, on_step)
    transport = open_transport(settings.wire, side.peer, settings.peer(role))
    since, sent, received = time.monotonic(), 0, 0
    taken, progress = 0, time.monotonic()
    try:
        verb = "Waiting for" if transport.listens else "Connecting to"
        tell(
            f"{verb} {side.peer} at {settings.wire.address}, from step {side.steps[-1]} of {settings.agreement.rounds}."
        )
        while True:
            connection = transport.connect()
            try:
                done = _converse(side, transport, connection, tell)
            finally:
                connection.close()
                # The other side gets a moment to hear why; the caller leaves last, so that what the listener sent has
                # gone out.
                connection.ended.wait(PARTING)
            sent, received = sent + connection.sent, received + connection.received
            if done:
                break
            if side.steps_taken > taken or transport.listens:
                taken, progress = side.steps_taken, time.monotonic()
            elif time.monotonic() - progress > settings.wire.patience:
                raise LeaktightError(
                    f"{side.peer} was reached again and again, and no step was taken. Look at its messages."
                )
            time.sleep(PAUSE)
    finally:
        transport.stop()
        side.close()
    return PartyResult(side.steps[-1], side.readings, sent, received, time.monotonic() - since, side.model_file)


def _converse(side: Side, transport: Transport, connection: Connection, tell: Tell) -> bool:
    """Use one connection for as far as it goes, and return whether the training run is done."""
    try:
        side.converse(connection)
        return True
    except Lost as error:
        tell(f"{error} {'Waiting for it to come back.' if transport.listens else 'Connecting again.'}")
    except PeerFault as error:
        connection.send_fault(str(error))
        if not transport.listens:
            raise
        tell(f"Refused: {error}")
    except Rejected as error:
        if not transport.listens:
            raise
        tell(str(error))
    except BaseException as error:
        # Its own troubles are none of the other party's business: they might speak of labels.
        connection.send_fault(f"{side.role} has stopped{'' if isinstance(error, LeaktightError) else ' unexpectedly'}.")
        raise
    return False
