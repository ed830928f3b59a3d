"""Connections: frames in both directions between two parties, in bounded queues, whatever transport carries them.

A party works step by step and gRPC calls it from threads of its own; the queues stand between the two. Whether the
other side is still there is gRPC's business (keep-alive, see `transport`). Here a party only loses its patience with
one that is there and sends nothing.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterable, Iterator

from leaktight.core.errors import LeaktightError
from leaktight.wire.fault import Lost, PeerFault, Rejected, printable
from leaktight.wire.frame import CONTROL_LIMIT, Frame, Sort, pack_words, read_frame, unpack_words

WAITING = 4
"""How many frames wait on each side at most; a party that sends more is made to wait itself."""
_POLL = 0.5


class Connection:
    """One connection. A transport feeds what comes in and drains what goes out, each in a thread of its own.

    Args:
        peer: who is on the other side, for errors.
        patience: seconds to wait for the other side's next frame, or for it to take one.
    """

    def __init__(self, peer: str, patience: float = 600.0) -> None:
        self.peer, self.patience = peer, patience
        self.limit = CONTROL_LIMIT
        self.sent = self.received = 0
        self.response_time: float | None = None
        self.closed = threading.Event()
        self.ended = threading.Event()
        self._in: queue.Queue[Frame | LeaktightError] = queue.Queue(WAITING)
        self._out: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._last_send = time.monotonic()

    def send(self, frame: Frame) -> None:
        """Hand over a frame; wait while the other side is slow to take earlier ones.

        Raises:
            Lost: the connection has ended, or the other side took nothing for too long.
        """
        content, start = frame.to_bytes(), time.monotonic()
        while not self.closed.is_set():
            try:
                self._out.put(content, timeout=min(_POLL, self.patience))
            except queue.Full:
                if self.ended.is_set():
                    break
                if time.monotonic() - start > self.patience:
                    raise Lost(f"{self.peer} is connected and took nothing for {self.patience:g} s.") from None
                continue
            self._last_send = time.monotonic()
            return
        raise self._loss()

    def receive(self, *sorts: Sort) -> Frame:
        """Return the next frame, which must be of one of these sorts.

        Raises:
            Lost: the connection ended, or nothing came for too long.
            PeerFault: what came is no such frame.
            Rejected: the other side does not continue.
        """
        try:
            # Whatever ends a connection is in the queue before it counts as ended.
            frame = self._in.get(block=not self.ended.is_set(), timeout=self.patience)
        except queue.Empty:
            if self.ended.is_set():
                raise self._loss() from None
            raise Lost(f"{self.peer} is connected and sent nothing for {self.patience:g} s.") from None
        self.response_time = time.monotonic() - self._last_send
        if isinstance(frame, LeaktightError):
            raise frame
        if frame.sort is Sort.FAULT:
            words = unpack_words(frame.payload, self.peer)
            raise Rejected(
                f"{self.peer} does not continue: {printable(str(words.get('sentence', 'it does not say why')))}"
            )
        if frame.sort not in sorts:
            wanted = " or ".join(sort.name for sort in sorts)
            raise PeerFault(f"{self.peer} must send a frame of sort {wanted} now. Got {frame.sort.name} instead.")
        return frame

    def send_fault(self, sentence: str) -> None:
        """Tell the other side why this one does not continue, if it still listens."""
        with contextlib.suppress(Lost):
            self.send(Frame(Sort.FAULT, 0, pack_words({"sentence": sentence})))

    def close(self) -> None:
        """End the connection after what was sent."""
        if not self.closed.is_set():
            self.closed.set()
            # If too many frames still wait, the transport sees that the connection is closed once it has taken them.
            with contextlib.suppress(queue.Full):
                self._out.put_nowait(None)

    def feed(self, contents: Iterable[bytes]) -> None:
        """Take in messages until they end; called by the transport, and returns when nobody receives any more."""
        end: LeaktightError = self._loss()
        try:
            for content in contents:
                self.received += len(content)
                if not self._put(read_frame(content, self.peer, self.limit)):
                    return
        except LeaktightError as error:
            end = error
        finally:
            self._put(end)
            self.ended.set()

    def drain(self) -> Iterator[bytes]:
        """Yield what goes out until the connection is closed; called by the transport."""
        while True:
            try:
                content = self._out.get(timeout=0.0 if self.closed.is_set() else _POLL)
            except queue.Empty:
                if self.closed.is_set():
                    return
                continue
            if content is None:
                return
            self.sent += len(content)
            yield content

    def _put(self, item: Frame | LeaktightError) -> bool:
        """Keep what came in for the receiver; return whether there still is one."""
        while not self.closed.is_set():
            try:
                self._in.put(item, timeout=_POLL)
                return True
            except queue.Full:
                continue
        return False

    def _loss(self) -> Lost:
        return Lost(f"The connection to {self.peer} ended.")
