"""Lines: one connection between two parties, whatever carries it: bounded queues, a heartbeat, and what went through."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterable, Iterator

from leaktight.core.errors import LeaktightError
from leaktight.wire.fault import Lost, PeerFault, Rejected, shown
from leaktight.wire.frame import CONTROL_LIMIT, Frame, Sort, read_frame
from leaktight.wire.payload import pack_words, unpack_words

WAITING = 4
"""How many frames wait on each side at most; who sends more is made to wait itself."""


class Line:
    """One connection. A transport feeds what comes in and drains what goes out, each in a thread of its own.

    Args:
        peer: who is on the other side, for errors.
        heartbeat: seconds between two signs of life.
        timeout: seconds without a sign of life after which the other side counts as lost.
        patience: seconds that a frame may take although there are signs of life.
    """

    def __init__(self, peer: str, heartbeat: float = 5.0, timeout: float = 30.0, patience: float = 600.0) -> None:
        self.peer, self.heartbeat, self.timeout, self.patience = peer, heartbeat, timeout, patience
        self.limit = CONTROL_LIMIT
        self.sent = self.received = 0
        self.round_trip: float | None = None
        self.closed = threading.Event()
        self.ended = threading.Event()
        self._in: queue.Queue[Frame | LeaktightError] = queue.Queue(WAITING)
        self._out: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._heard = time.monotonic()
        self._pinged = (0, 0.0)
        self._pulse = threading.Thread(target=self._beat, daemon=True, name="heartbeat")
        self._pulse.start()

    def send(self, frame: Frame) -> None:
        """Hand over a frame; wait while the other side is slow to take earlier ones.

        Raises:
            Lost: the line is closed, or nothing was heard for too long.
        """
        content = frame.to_bytes()
        while not self.closed.is_set():
            try:
                self._out.put(content, timeout=self.timeout)
            except queue.Full:
                self._require_alive()
                continue
            return
        raise self._lost()

    def receive(self, *sorts: Sort) -> Frame:
        """Return the next frame, which must be of one of these sorts.

        Raises:
            Lost: the line ended, or nothing was heard for too long.
            PeerFault: what came is no such frame.
            Rejected: the other side does not go on.
        """
        found = self._next()
        if isinstance(found, LeaktightError):
            raise found
        if found.sort is Sort.FAULT:
            words = unpack_words(found.payload, self.peer)
            raise Rejected(f"{self.peer} does not go on: {shown(str(words.get('sentence', 'it does not say why')))}")
        if found.sort not in sorts:
            wanted = " or ".join(sort.name for sort in sorts)
            raise PeerFault(f"{self.peer} must send a frame of sort {wanted} now. Got {found.sort.name} instead.")
        return found

    def fault(self, sentence: str) -> None:
        """Tell the other side why it does not go on, if it still listens."""
        with contextlib.suppress(Lost):
            self.send(Frame(Sort.FAULT, 0, pack_words({"sentence": sentence})))

    def close(self) -> None:
        """End the line after what was sent."""
        if not self.closed.is_set():
            self.closed.set()
            # If too many frames still wait, the transport sees that the line is closed once it has taken them.
            with contextlib.suppress(queue.Full):
                self._out.put_nowait(None)

    def feed(self, contents: Iterable[bytes]) -> None:
        """Take in what comes until it ends; called by the transport, and returns when nobody listens any more."""
        try:
            for content in contents:
                self._heard = time.monotonic()
                self.received += len(content)
                frame = read_frame(content, self.peer, self.limit)
                if frame.sort is Sort.PING:
                    self._offer(Frame(Sort.PONG, frame.step).to_bytes())
                elif frame.sort is Sort.PONG:
                    self._returned(frame.step)
                elif not self._keep(frame):
                    return
            self._keep(self._lost())
        except LeaktightError as error:
            self._keep(error)
        finally:
            self.ended.set()

    def drain(self) -> Iterator[bytes]:
        """Yield what goes out until the line is closed; called by the transport."""
        while True:
            try:
                content = self._out.get(timeout=0.0 if self.closed.is_set() else 1.0)
            except queue.Empty:
                if self.closed.is_set():
                    return
                continue
            if content is None:
                return
            self.sent += len(content)
            yield content

    def _next(self) -> Frame | LeaktightError:
        started = time.monotonic()
        while True:
            wait = self._heard + self.timeout - time.monotonic()
            try:
                return self._in.get(timeout=max(0.01, wait))
            except queue.Empty:
                self._require_alive()
                if self.ended.is_set():
                    return self._lost()
                if time.monotonic() - started > self.patience:
                    return Lost(f"{self.peer} gave signs of life and sent nothing for {self.patience:g} s.")

    def _require_alive(self) -> None:
        if time.monotonic() - self._heard > self.timeout:
            raise Lost(f"Nothing was heard of {self.peer} for {self.timeout:g} s.")

    def _lost(self) -> Lost:
        return Lost(f"The connection to {self.peer} ended.")

    def _keep(self, found: Frame | LeaktightError) -> bool:
        """Keep what came in for who receives; return whether anybody still does."""
        while not self.closed.is_set():
            try:
                self._in.put(found, timeout=0.5)
                return True
            except queue.Full:
                continue
        return False

    def _beat(self) -> None:
        number = 0
        while not self.closed.wait(self.heartbeat if number else min(0.2, self.heartbeat)):
            number += 1
            self._pinged = (number, time.monotonic())
            self._offer(Frame(Sort.PING, number).to_bytes())

    def _offer(self, content: bytes) -> None:
        # Frames that wait are a sign of life as well.
        with contextlib.suppress(queue.Full):
            self._out.put_nowait(content)

    def _returned(self, number: int) -> None:
        expected, at = self._pinged
        if number == expected:
            self.round_trip = time.monotonic() - at
