"""A network of our own, made and joined by real processes."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from leaktight.flower import namespace

SEES = "import os, pathlib; print(os.getuid(), sorted(l.split(':')[0].strip() for l in open('/proc/net/dev').readlines()[2:]))"


@pytest.fixture
def holder():
    words = [sys.executable, namespace.__file__, "hold"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        said = held.stdout.readline()
        if said.split()[-1] != namespace.NET:
            held.communicate()
            pytest.skip(f"no network namespace is permitted here: {said}")
        yield held
        held.stdin.close()


def test_who_joins_sees_nothing_but_loopback_and_stays_who_it_is(holder):
    words = [sys.executable, namespace.__file__, "join", str(holder.pid), sys.executable, "-c", SEES]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"{os.getuid()} ['lo']\n"
    assert namespace.namespace_of(holder.pid) not in ("", namespace.namespace_of(os.getpid()))


def test_who_is_not_root_makes_a_user_namespace_around_it(holder):
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(namespace.__file__).parent)!r})
import ctypes, encodings.idna, namespace
os.setgroups([]), os.setgid(65534), os.setuid(65534)
# Whoever changes its user is hidden from itself in /proc until it starts another program.
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
print(*namespace.create(), os.getuid(), os.getgid())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        assert "PermissionError" in done.stderr
        pytest.skip("users may not make namespaces here")
    assert done.stdout.split() == ["user", "net", "65534", "65534"]


def test_where_none_is_permitted_it_says_so(monkeypatch, capsys):
    def refuse():
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(namespace, "create", refuse)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    namespace.main(["hold"])
    assert capsys.readouterr().out.startswith("not permitted: ")


def test_a_process_that_is_gone_has_no_network():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert namespace.namespace_of(gone.pid) == ""
    assert not namespace.listens(gone.pid, 1)
