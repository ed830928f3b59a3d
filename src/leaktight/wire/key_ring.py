"""Key ring: the keys that a party's noise comes from, by the step from which each is used."""

from __future__ import annotations

import json

from leaktight.core.defence import Defence, bind_key
from leaktight.core.errors import InvalidValue
from leaktight.core.secure import SecretKey


class KeyRing:
    """A party's keys, bound to its role and its defence.

    A step that was answered may have to be replayed with the same noise, so its key is kept. But every process takes a
    new key for the steps that the replay guard does not know. So whoever puts an old checkpoint back, or runs a copy of
    it, gets new noise there.

    Args:
        role: whose they are.
        defence: whose noise they are for: a changed setting never meets old noise.

    Example:
        >>> from leaktight.core.defence import Undefended
        >>> ring = KeyRing("label-party", Undefended())
        >>> ring.renew(0), ring.renew(40)
        (None, None)
        >>> ring.at(0) == ring.at(39), ring.at(39) == ring.at(40)
        (True, False)
    """

    def __init__(self, role: str, defence: Defence) -> None:
        self.role, self.defence = role, defence
        self._keys: list[tuple[int, SecretKey]] = []

    def at(self, round: int) -> SecretKey:
        """Return the key of a step."""
        before = [key for first, key in self._keys if first <= round]
        return bind_key(before[-1] if before else self._keys[0][1], self.role, self.defence)

    def renew(self, step: int) -> None:
        """Take a new key for this step and all after it."""
        self._keys = [*((first, key) for first, key in self._keys if first < step), (step, SecretKey.new())]

    def forget(self, below: int) -> None:
        """Drop the keys of steps that are never replayed any more."""
        starts = [first for first, _ in self._keys if first <= below]
        self._keys = [(first, key) for first, key in self._keys if not starts or first >= starts[-1]]

    def clear(self) -> None:
        """Drop all keys."""
        self._keys = []

    def write(self) -> str:
        """Return the keys as a text, for a private file alone."""
        return json.dumps([(first, key.hex) for first, key in self._keys])

    def read(self, text: str) -> None:
        """Take the keys that `write` returned."""
        try:
            self._keys = [(int(first), SecretKey.from_hex(str(key))) for first, key in json.loads(text)]
        except (ValueError, TypeError):
            raise InvalidValue(
                "The keys of a checkpoint must be steps and secrets. They are not; start anew."
            ) from None
