"""Transports: how a party reaches the other one over gRPC. The only importer of grpc.

gRPC frames messages, bounds their size, authenticates both sides, and notices by keep-alive pings when the other side
is gone. A stream has no deadline of gRPC's, because a training run may take days.
"""

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
from leaktight.wire.connection import Connection
from leaktight.wire.connection_check import HungUp, check_connection
from leaktight.wire.fault import Lost, Rejected, printable
from leaktight.wire.frame import HEADER
from leaktight.wire.party_file import Wire, other_role, split_address

SERVICE = "leaktight.v1.Split"
"""With the protocol's version. The method is the caller's role, so that two parties of one role do not meet."""
TRIES = 3


class Transport(Protocol):
    """Makes connections to the other party."""

    @property
    def listens(self) -> bool:
        """Whether the other party connects to this one; then its fault ends the connection, and not this process."""
        ...

    def connect(self) -> Connection:
        """Wait for the other party, and return a connection to it."""
        ...

    def stop(self) -> None:
        """End everything that was started."""
        ...


def open_transport(wire: Wire, peer: str, name: str) -> Transport:
    """Return the transport that a party's file describes.

    Args:
        wire: the file's section.
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
        self._connections: queue.Queue[Connection] = queue.Queue()
        self._busy, self._stopping = threading.Lock(), threading.Event()
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="connection")
        options = [
            *_options(wire),
            # The other party may have chosen a shorter `heartbeat`.
            ("grpc.http2.max_ping_strikes", 0),
            # Two processes that share a port would each get some of the connections.
            ("grpc.so_reuseport", 0),
        ]
        self._server = grpc.server(self._pool, options=options, maximum_concurrent_rpcs=4)
        handler = grpc.stream_stream_rpc_method_handler(self._serve)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {peer: handler}),))
        try:
            self.port = self._add_port(grpc)
        except RuntimeError:
            raise LeaktightError(
                f"The address `{wire.listen}` cannot be listened at. Is another process there, or is it not of this "
                "machine?"
            ) from None
        self._server.start()

    def connect(self) -> Connection:
        """Return the next connection.

        Raises:
            LeaktightError: nobody came for too long.
        """
        try:
            return self._connections.get(timeout=self.wire.patience)
        except queue.Empty:
            raise LeaktightError(
                f"{self.peer} did not come for {self.wire.patience:g} s. Start it, or raise `patience`."
            ) from None

    def stop(self) -> None:
        """Stop listening, after what was sent."""
        self._stopping.set()
        self._server.stop(1.0).wait()
        # There may be a connection that nobody asked for.
        while not self._connections.empty():
            self._connections.get().close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _serve(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        grpc = _grpc()
        if not self.wire.insecure and self.name not in _certified_names(context):
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED, f"The certificate must be of {self.name}. It is of another one."
            )
        if not self._busy.acquire(blocking=False):
            context.abort(grpc.StatusCode.UNAVAILABLE, f"Another {self.peer} is connected.")
        try:
            connection = _read_into(Connection(self.peer, self.wire.patience), requests, self.wire)
            self._connections.put(connection)
            if self._stopping.is_set():
                connection.close()
            yield from connection.drain()
        finally:
            self._busy.release()

    def _add_port(self, grpc: Any) -> int:
        if self.wire.insecure:
            return int(self._server.add_insecure_port(self.wire.listen))
        own = find_certificate(self.wire)
        pair = (read_certificate(own.key), read_certificate(own.certificate))
        credentials = grpc.ssl_server_credentials([pair], read_certificate(own.authority), require_client_auth=True)
        return int(self._server.add_secure_port(self.wire.listen, credentials))


class Caller:
    """Connects to the address at which the other party waits, and tries again as long as it is not there."""

    listens = False

    def __init__(self, wire: Wire, peer: str, name: str) -> None:
        _grpc()
        self.wire, self.peer, self.name = wire, peer, name
        self._own = None if wire.insecure else find_certificate(wire)
        self._channel: Any = None

    def connect(self) -> Connection:
        """Return a new connection.

        Raises:
            LeaktightError: nobody was there for too long.
            Rejected: the certificates do not fit.
        """
        host, port = split_address(self.wire.connect)
        end, pause, hung_up = time.monotonic() + self.wire.patience, 0.05, 0
        while True:
            try:
                check_connection(host, port, self._own, self.name)
                return self._call()
            except Lost as error:
                hung_up = hung_up + 1 if isinstance(error, HungUp) else 0
                # A process that ends hangs up once; one that does so again and again does not accept the certificate.
                if hung_up == TRIES:
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

    def _call(self) -> Connection:
        grpc = _grpc()
        self.stop()
        # A pool that other channels share would make this one wait for as long as those have failed.
        options = [*_options(self.wire), ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        if self._own is None:
            self._channel = grpc.insecure_channel(self.wire.connect, options)
        else:
            parts = (read_certificate(path) for path in (self._own.authority, self._own.key, self._own.certificate))
            options.append(("grpc.ssl_target_name_override", self.name))
            self._channel = grpc.secure_channel(self.wire.connect, grpc.ssl_channel_credentials(*parts), options)
        connection = Connection(self.peer, self.wire.patience)
        call = self._channel.stream_stream(f"/{SERVICE}/{other_role(self.peer)}")
        return _read_into(connection, call(connection.drain(), wait_for_ready=True), self.wire)


def find_certificate(wire: Wire) -> Certificate:
    """Return where this party's certificate lies, after reading each of its files once."""
    folder = Path(wire.certificates).expanduser()
    own = Certificate(folder.name, folder / "authority.pem", folder / "certificate.pem", folder / "key.pem")
    for path in (own.authority, own.certificate, own.key):
        read_certificate(path)
    return own


def _read_into(connection: Connection, messages: Iterator[bytes], wire: Wire) -> Connection:
    """Start the thread that feeds a connection with gRPC's messages; what gRPC raises becomes one sentence."""

    def contents() -> Iterator[bytes]:
        grpc = _grpc()
        try:
            yield from messages
        except grpc.RpcError as error:
            raise _fault(error, connection.peer, wire) from None

    threading.Thread(target=connection.feed, args=(contents(),), daemon=True, name="connection reader").start()
    return connection


def _fault(error: Any, peer: str, wire: Wire) -> LeaktightError:
    """Return an error of gRPC in our own words; only the party that called gets a status."""
    grpc = _grpc()
    code = error.code() if isinstance(error, grpc.Call) else None
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return Rejected(f"A message between the parties must have at most {wire.limit} bytes. Raise `largest`.")
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return Rejected(f"{peer} does not continue: {printable(str(error.details()))}")
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return Rejected(
            f"The other side at {wire.address} must be {peer} of the same version of leaktight, waiting for this "
            "party. It is not."
        )
    return Lost(f"The connection to {peer} ended.")


def _certified_names(context: Any) -> set[str]:
    """Return the names that the other side's certificate carries."""
    properties = context.auth_context()
    fields = ("x509_common_name", "x509_subject_alternative_name")
    return {value.decode(errors="replace") for field in fields for value in properties.get(field, [])}


def _options(wire: Wire) -> list[tuple[str, Any]]:
    grace = max(1, round(1000 * (wire.timeout - wire.heartbeat)))
    return [
        ("grpc.max_receive_message_length", HEADER.size + wire.limit),
        ("grpc.keepalive_time_ms", max(1, round(1000 * wire.heartbeat))),
        # Releases of gRPC differ in which of the two they go by.
        ("grpc.keepalive_timeout_ms", grace),
        ("grpc.http2.ping_timeout_ms", grace),
        # The other party may compute for longer than two pings.
        ("grpc.http2.max_pings_without_data", 0),
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
