"""Doors: how a party reaches the other one over gRPC. The only importer of grpc."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from leaktight.core.certificates import Certificate, read_certificate
from leaktight.core.errors import LeaktightError
from leaktight.wire.fault import Lost, Rejected, shown
from leaktight.wire.frame import HEADER
from leaktight.wire.line import Line
from leaktight.wire.preflight import TurnedAway, look
from leaktight.wire.settings import Wire, other, split_address

SERVICE = "leaktight.Split"
"""The method is the caller's role, so that two parties of one role do not wait for each other to speak."""
TRIES = 3
ROOM = 4096
"""How much more than its limit gRPC lets through, so that a frame that is just too large gets our sentence and not gRPC's."""


class Door(Protocol):
    """Where the other party comes in."""

    @property
    def listens(self) -> bool:
        """Whether the other party comes to this one; then a fault of it ends its connection, and not this process."""
        ...

    def accept(self) -> Line:
        """Wait for the other party, and return the line to it."""
        ...

    def stop(self) -> None:
        """End everything that was started."""
        ...


def open_door(wire: Wire, peer: str, name: str) -> Door:
    """Return the door that the settings describe.

    Args:
        wire: the settings.
        peer: who is on the other side.
        name: the name that its certificate must carry.
    """
    return Listener(wire, peer, name) if wire.listen else Caller(wire, peer, name)


class Listener:
    """Waits at an address for the other party; strangers are turned away, and there is one connection at a time."""

    listens = True

    def __init__(self, wire: Wire, peer: str, name: str) -> None:
        grpc = _grpc()
        self.wire, self.peer, self.name = wire, peer, name
        self._lines: queue.Queue[Line] = queue.Queue()
        self._busy, self._stopping = threading.Lock(), threading.Event()
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="line")
        # Two processes that share a port would each get some of the connections.
        options = [*_options(wire), ("grpc.so_reuseport", 0)]
        self._server = grpc.server(self._pool, options=options, maximum_concurrent_rpcs=4)
        handler = grpc.stream_stream_rpc_method_handler(self._serve)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {peer: handler}),))
        try:
            self.port = self._add_port(grpc)
        except RuntimeError:
            raise LeaktightError(
                f"The address `{wire.listen}` cannot be listened at. Is another process there, or is it not of this machine?"
            ) from None
        self._server.start()

    def accept(self) -> Line:
        """Return the next connection.

        Raises:
            LeaktightError: nobody came for too long.
        """
        try:
            return self._lines.get(timeout=self.wire.patience)
        except queue.Empty:
            raise LeaktightError(
                f"{self.peer} did not come for {self.wire.patience:g} s. Start it, or raise `patience`."
            ) from None

    def stop(self) -> None:
        """Stop listening, after what was sent."""
        self._stopping.set()
        self._server.stop(1.0).wait()
        # Somebody may have come whom nobody took.
        while not self._lines.empty():
            self._lines.get().close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _serve(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        grpc = _grpc()
        if not self.wire.insecure and self.name not in _names(context):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, f"The certificate must be of {self.name}. It is of another one.")
        if not self._busy.acquire(blocking=False):
            context.abort(grpc.StatusCode.UNAVAILABLE, f"Another {self.peer} is connected.")
        try:
            line = Line(self.peer, self.wire.heartbeat, self.wire.timeout, self.wire.patience)
            reader = threading.Thread(target=line.feed, args=(_quiet(requests, self.wire, self.peer),), daemon=True)
            reader.start()
            self._lines.put(line)
            if self._stopping.is_set():
                line.close()
            yield from line.drain()
        finally:
            self._busy.release()

    def _add_port(self, grpc: Any) -> int:
        if self.wire.insecure:
            return int(self._server.add_insecure_port(self.wire.listen))
        own = own_certificate(self.wire)
        pair = (read_certificate(own.key), read_certificate(own.certificate))
        credentials = grpc.ssl_server_credentials([pair], read_certificate(own.authority), require_client_auth=True)
        return int(self._server.add_secure_port(self.wire.listen, credentials))


class Caller:
    """Connects to the address at which the other party waits, and tries again as long as it is not there."""

    listens = False

    def __init__(self, wire: Wire, peer: str, name: str) -> None:
        _grpc()
        self.wire, self.peer, self.name = wire, peer, name
        self._own = None if wire.insecure else own_certificate(wire)
        self._channel: Any = None

    def accept(self) -> Line:
        """Return a new connection.

        Raises:
            LeaktightError: nobody was there for too long.
            Rejected: the certificates do not fit.
        """
        host, port = split_address(self.wire.connect)
        end, pause, away = time.monotonic() + self.wire.patience, 0.05, 0
        while True:
            try:
                look(host, port, self._own, self.name)
                return self._called()
            except Lost as error:
                away = away + 1 if isinstance(error, TurnedAway) else 0
                # Once may be a process that ends; who does so again and again does not like the certificate.
                if away == TRIES:
                    raise Rejected(str(error)) from None
                if time.monotonic() + pause > end:
                    raise LeaktightError(f"{error} Start {self.peer}, or raise `patience`.") from None
                time.sleep(pause)
                pause = min(2.0, 2 * pause)

    def stop(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _called(self) -> Line:
        grpc = _grpc()
        self.stop()
        # A pool that other channels share would make this one wait for as long as those have failed.
        options = [*_options(self.wire), ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        if self._own is None:
            self._channel = grpc.insecure_channel(self.wire.connect, options)
        else:
            parts = (read_certificate(path) for path in (self._own.authority, self._own.key, self._own.certificate))
            named = [*options, ("grpc.ssl_target_name_override", self.name)]
            self._channel = grpc.secure_channel(self.wire.connect, grpc.ssl_channel_credentials(*parts), named)
        line = Line(self.peer, self.wire.heartbeat, self.wire.timeout, self.wire.patience)
        responses = self._channel.stream_stream(f"/{SERVICE}/{other(self.peer)}")(line.drain(), wait_for_ready=True)
        reader = threading.Thread(target=line.feed, args=(_quiet(responses, self.wire, self.peer),), daemon=True)
        reader.start()
        return line


def own_certificate(wire: Wire) -> Certificate:
    """Return where this party's certificate lies."""
    folder = Path(wire.certificates).expanduser()
    found = Certificate(folder.name, folder / "authority.pem", folder / "certificate.pem", folder / "key.pem")
    for path in (found.authority, found.certificate, found.key):
        read_certificate(path)
    return found


def _quiet(contents: Iterator[bytes], wire: Wire, peer: str) -> Iterator[bytes]:
    """Yield what comes in; what gRPC raises becomes one sentence."""
    grpc = _grpc()
    try:
        yield from contents
    except grpc.RpcError as error:
        code = error.code() if isinstance(error, grpc.Call) else None
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise Rejected(f"A message between the parties must have at most {wire.limit} bytes. Raise `largest`.") from None
        if code is grpc.StatusCode.PERMISSION_DENIED:
            raise Rejected(f"{peer} does not go on: {shown(str(error.details()))}") from None
        if code is grpc.StatusCode.UNIMPLEMENTED:
            raise Rejected(f"The other side at {wire.address} must be {peer} that waits for this party. It is not.") from None
        raise Lost(f"The connection to {peer} ended.") from None


def _names(context: Any) -> set[str]:
    """Return the names that the other side's certificate carries."""
    found = context.auth_context()
    fields = ("x509_common_name", "x509_subject_alternative_name")
    return {value.decode(errors="replace") for field in fields for value in found.get(field, [])}


def _options(wire: Wire) -> list[tuple[str, Any]]:
    most = wire.limit + HEADER.size + ROOM
    return [
        ("grpc.max_receive_message_length", most),
        ("grpc.max_send_message_length", -1),
        # Messages of a megabyte are quicker in few frames, and without waiting for a window to open.
        ("grpc.http2.max_frame_size", (1 << 24) - 1),
        ("grpc.http2.lookahead_bytes", 1 << 23),
        ("grpc.http2.bdp_probe", 0),
        ("grpc.optimization_target", "throughput"),
    ]


def _grpc() -> Any:
    # What gRPC writes to standard error by itself is no sentence for a person.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import grpc
    except ImportError as error:
        raise LeaktightError(
            "Split learning between machines needs the package `grpcio`. Install it with `pip install leaktight[wire]`."
        ) from error
    return grpc
