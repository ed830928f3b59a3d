from __future__ import annotations

import os
import pwd
from types import SimpleNamespace

import pytest

from leaktight.core import local_users
from leaktight.core.errors import InvalidValue
from leaktight.core.local_users import other_users, require_alone


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    def make(accounts: list[tuple[str, int, str]], running: set[int] = frozenset(), ours: int = 1000) -> None:
        found = [SimpleNamespace(pw_name=name, pw_uid=uid, pw_shell=shell) for name, uid, shell in accounts]
        monkeypatch.setattr(pwd, "getpwall", lambda: found)
        monkeypatch.setattr(os, "getuid", lambda: ours)
        monkeypatch.setattr(local_users, "_list_users", lambda: running)

    return make


ROOT, DAEMON, ANN, BOB = (
    ("root", 0, "/bin/bash"),
    ("daemon", 1, "/usr/sbin/nologin"),
    ("ann", 1000, "/bin/zsh"),
    ("bob", 1001, "/bin/sh"),
)


@pytest.mark.parametrize(
    ("accounts", "running", "ours", "expected"),
    [
        ([ROOT, DAEMON, ANN], {0, 1, 1000}, 1000, []),
        ([ROOT, DAEMON], {0, 1}, 0, []),
        ([ROOT, ("sync", 4, "/bin/sync")], set(), 0, []),
        ([ROOT, ANN, BOB], set(), 1000, ["bob"]),
        ([ROOT, ("postgres", 101, "/bin/bash")], set(), 0, ["postgres"]),
        ([ROOT, DAEMON], {0, 101, 4711}, 0, ["user 4711"]),
    ],
    ids=["only we", "only root", "no shell", "an account", "a service with a shell", "a process without an account"],
)
def test_who_else_is_here(machine, accounts, running, ours, expected) -> None:
    machine(accounts, running, ours)
    assert other_users() == expected


def test_somebody_else_is_refused_unless_trusted(machine) -> None:
    machine([ROOT, ANN, *((f"user{number}", 2000 + number, "/bin/sh") for number in range(5))])
    with pytest.raises(
        InvalidValue, match=r"^Flower's SuperLink would be open to .* \(user0, user1, user2 and 2 more\), who could"
    ):
        require_alone("Flower's SuperLink", trust=False)
    require_alone("Flower's SuperLink", trust=True)
    machine([ROOT, ANN])
    require_alone("Flower's SuperLink", trust=False)


def test_processes_of_this_machine_are_seen() -> None:
    assert os.getuid() in local_users._list_users()
