"""Other users of this machine, who could reach a loopback port that has no authentication."""

from __future__ import annotations

import os
import pwd
import subprocess

from leaktight.core.errors import InvalidValue

NO_LOGIN = frozenset({"", "nologin", "false", "true", "sync", "halt", "shutdown"})
"""Shells of accounts that nobody logs in to."""
FIRST_PERSON = 1000
"""User numbers below belong to the system's own services."""


def other_users() -> list[str]:
    """Return who else may run programs here.

    These are accounts with a login shell, and owners of running processes that are no system service. Root is not
    counted: nothing is safe from it. On macOS, people's numbers start at 501 and are found by their login shells.
    """
    ours = {0, os.getuid()}
    accounts = {account.pw_uid: account.pw_name for account in pwd.getpwall()}
    people = {account.pw_uid for account in pwd.getpwall() if os.path.basename(account.pw_shell) not in NO_LOGIN}
    people |= {uid for uid in _list_users() if uid >= FIRST_PERSON}
    return [accounts.get(uid, f"user {uid}") for uid in sorted(people - ours)]


def require_alone(what: str, trust: bool) -> None:
    """Raise if something would be open to other users of this machine whom the caller does not trust.

    Args:
        what: what would be open to them, as the subject of a sentence.
        trust: whether the caller trusts them.

    Raises:
        InvalidValue: there are some.
    """
    others = [] if trust else other_users()
    if others:
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise InvalidValue(
            f"{what} would be open to other users of this machine ({named}), who could run code as you: it has no "
            "authentication, and a network namespace is not permitted here. Use a machine of your own, or add "
            "`--trust-local-users`."
        )


def _list_users() -> set[int]:
    listing = subprocess.run(["ps", "-A", "-o", "uid="], capture_output=True, text=True, check=False)  # noqa: S607
    return {int(uid) for uid in listing.stdout.split()}
