"""A network of our own: a namespace with nothing but loopback, which no other user of the machine can enter.

Flower's SuperLink has no authentication for whoever submits an app, and its parts speak over TCP alone. In here their
ports are out of
reach for everybody else, whatever they know. It is run as a file of its own, so it uses nothing but Python:

    namespace.py hold            make one, say what it is made of, and hold it until the pipe closes
    namespace.py join PID WORDS  run a program in the one that a process holds
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

USER, NET = "user", "net"
_FLAGS = {USER: 0x10000000, NET: 0x40000000}
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


def create() -> tuple[str, ...]:
    """Bring this process into a new namespace with loopback up; return what it is made of.

    Whoever may not make a network makes a user namespace around it first, in which it stays who it is.

    Raises:
        OSError: the machine does not permit it.
    """
    own = os.geteuid(), os.getegid()
    try:
        _call("unshare", _FLAGS[NET])
        kinds: tuple[str, ...] = (NET,)
    except PermissionError:
        _call("unshare", _FLAGS[USER] | _FLAGS[NET])
        Path("/proc/self/setgroups").write_text("deny")
        for name, number in zip(("uid_map", "gid_map"), own, strict=True):
            Path("/proc/self", name).write_text(f"{number} {number} 1")
        kinds = (USER, NET)
    _raise_loopback()
    return kinds


def join(pid: int) -> None:
    """Bring this process into the namespace that another one holds."""
    for kind in (USER, NET):
        # A process that is in that user namespace already cannot join it again.
        if namespace_of(pid, kind) != namespace_of(os.getpid(), kind):
            with open(f"/proc/{pid}/ns/{kind}") as file:
                _call("setns", file.fileno(), _FLAGS[kind])


def namespace_of(pid: int, kind: str = NET) -> str:
    """Return what names the namespace of a process, or nothing if it is gone or not ours to ask."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return ""


def listens(pid: int, port: int) -> bool:
    """Return whether somebody listens on a port in the namespace of a process."""
    for name in ("tcp", "tcp6"):
        try:
            rows = [line.split() for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
        except OSError:
            continue
        if any(row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port for row in rows):
            return True
    return False


def _raise_loopback() -> None:
    name = b"lo".ljust(16, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        held = fcntl.ioctl(asked, _GET_FLAGS, name + bytes(16))
        flags = struct.unpack_from("h", held, 16)[0] | _UP
        fcntl.ioctl(asked, _SET_FLAGS, name + struct.pack("h14x", flags))


def _call(name: str, *numbers: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*numbers):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def main(words: list[str]) -> None:
    """Hold a namespace or join one, as the words say."""
    if words[0] == "join":
        join(int(words[1]))
        os.execv(words[2], words[2:])  # noqa: S606 - the words are ours
    try:
        said = " ".join(create())
    except (OSError, AttributeError) as error:
        said = f"not permitted: {error}"
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
