"""The door: grpc comes in here and nowhere else, and only when it is needed."""

import ast
import threading
import time
from pathlib import Path

import grpc

import leaktight
from leaktight.wire.door import Listener
from leaktight.wire.settings import Wire

SOURCE = Path(leaktight.__file__).parent


def imports_grpc(node: ast.AST) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(name.split(".")[0] == "grpc" for name in names)


def test_only_the_door_imports_grpc_and_not_before_it_is_opened():
    mentions = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    trees = {path.relative_to(SOURCE).as_posix(): ast.parse(text) for path, text in mentions.items() if "import grpc" in text}
    assert [name for name, tree in trees.items() if any(map(imports_grpc, ast.walk(tree)))] == ["wire/door.py"]
    assert not any(map(imports_grpc, trees["wire/door.py"].body))


def test_stopping_ends_also_a_connection_that_nobody_took(port):
    wire = Wire(listen=f"127.0.0.1:{port}", insecure=True, checkpoint="none")
    door = Listener(wire, "feature-party", "feature-party")
    waiting = threading.Event()
    with grpc.insecure_channel(wire.listen) as channel:
        # The stream of requests stays open until the test is over.
        call = channel.stream_stream("/leaktight.Split/feature-party")(iter(waiting.wait, True), wait_for_ready=True)
        taken = next(call)
        assert taken[:4] == b"LKTW"
        door.stop()
        waiting.set()
    end = time.monotonic() + 10
    while any(thread.name.startswith(("line", "heartbeat")) for thread in threading.enumerate()):
        assert time.monotonic() < end, threading.enumerate()
        time.sleep(0.01)
