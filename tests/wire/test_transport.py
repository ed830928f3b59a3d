"""The transport: grpc comes in here and nowhere else, only when it is needed, and does what is left to it."""

import ast
import contextlib
import resource
import socket
import threading
import time
from pathlib import Path

import grpc
import pytest

import leaktight
from leaktight.wire.fault import Lost
from leaktight.wire.frame import Frame, Sort
from leaktight.wire.party_file import Wire
from leaktight.wire.transport import Caller, Listener

SOURCE = Path(leaktight.__file__).parent
SETTINGS = {"insecure": True, "checkpoint": "none", "heartbeat": 0.2, "timeout": 1.5, "patience": 60.0}


def imports_grpc(node: ast.AST) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(name.split(".")[0] == "grpc" for name in names)


def test_only_the_transport_imports_grpc_and_not_before_it_is_opened():
    mentions = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    trees = {
        path.relative_to(SOURCE).as_posix(): ast.parse(text) for path, text in mentions.items() if "import grpc" in text
    }
    assert [name for name, tree in trees.items() if any(map(imports_grpc, ast.walk(tree)))] == ["wire/transport.py"]
    assert not any(map(imports_grpc, trees["wire/transport.py"].body))


def wait_until(what) -> None:
    end = time.monotonic() + 10
    while not what():
        assert time.monotonic() < end, threading.enumerate()
        time.sleep(0.01)


def test_stopping_ends_also_a_connection_that_nobody_took(port):
    wire = Wire(listen=f"127.0.0.1:{port}", insecure=True, checkpoint="none")
    listener = Listener(wire, "feature-party", "feature-party")
    waiting = threading.Event()
    with grpc.insecure_channel(wire.listen) as channel:
        # The stream of requests stays open until the test is over.
        method = channel.stream_stream("/leaktight.v1.Split/feature-party")
        call = method(iter(waiting.wait, True), wait_for_ready=True)
        wait_until(lambda: not listener._connections.empty())
        listener.stop()
        waiting.set()
        call.cancel()
    wait_until(lambda: not any(thread.name.startswith("connection") for thread in threading.enumerate()))


def http2_frame(sort: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([sort, flags]) + stream.to_bytes(4, "big") + payload


def test_a_length_that_is_announced_and_never_sent_is_refused_at_once(port):
    """gRPC's own prefix says how long a message is: whoever writes it by hand must not make us wait, or fill our memory."""
    listener = Listener(Wire(listen=f"127.0.0.1:{port}", **SETTINGS), "feature-party", "feature-party")
    path, authority = b"/leaktight.v1.Split/feature-party", b"localhost"
    # POST, http, and four fields by their names' place in HPACK's table or in full.
    fields = b"\x83\x86\x04" + bytes([len(path)]) + path + b"\x01" + bytes([len(authority)]) + authority
    fields += b"\x0f\x10\x10application/grpc\x00\x02te\x08trailers"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0, b""))
        raw.sendall(http2_frame(1, 4, 1, fields) + http2_frame(0, 0, 1, b"\0\xff\xff\xff\xff begins"))
        connection = listener.connect()
        with pytest.raises(Lost, match="The connection to feature-party ended"):
            connection.receive(Sort.HELLO)
    connection.close()
    listener.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


class Relay:
    """Carries bytes between two ports until it falls silent, with both connections still open: a cable that was pulled."""

    def __init__(self, port: int) -> None:
        self.target, self.silent = port, False
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.sockets = [self.server]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self.server.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.target))
                self.sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 16):
                if not self.silent:
                    sink.sendall(content)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for each in self.sockets:
            each.close()


@pytest.fixture
def relayed(port):
    """Both ends of a connection through a relay, and the relay."""
    listener = Listener(Wire(listen=f"127.0.0.1:{port}", **SETTINGS), "feature-party", "feature-party")
    relay = Relay(port)
    caller = Caller(Wire(connect=f"127.0.0.1:{relay.port}", **SETTINGS), "label-party", "label-party")
    ends = caller.connect(), listener.connect()
    yield *ends, relay
    for end in ends:
        end.close()
    relay.close()
    caller.stop()
    listener.stop()


def test_keep_alive_leaves_a_silent_connection_open(relayed):
    near, far, _ = relayed
    time.sleep(2 * SETTINGS["timeout"])
    for one, other in ((near, far), (far, near)):
        one.send(Frame(Sort.DONE, 7))
        assert other.receive(Sort.DONE).step == 7


def test_keep_alive_notices_on_both_sides_that_nothing_comes_through(relayed):
    near, far, relay = relayed
    near.send(Frame(Sort.DONE, 7))
    assert far.receive(Sort.DONE).step == 7
    relay.silent = True
    start = time.monotonic()
    for end in (near, far):
        with pytest.raises(Lost, match=f"The connection to {end.peer} ended"):
            end.receive(Sort.DONE)
    # Long before patience ends.
    assert time.monotonic() - start < SETTINGS["patience"] / 2
