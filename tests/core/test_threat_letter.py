from itertools import pairwise

import pytest

from leaktight.core.threat import Knows, ThreatModel
from leaktight.core.threat_letter import LETTERS, letter_of


def letter(*knows, seat="server", active=False):
    found = letter_of(ThreatModel(seat=seat, knows=frozenset(knows)), active)
    return found and found.letter


def test_the_table_is_the_source_s():
    assert "".join(one.letter for one in LETTERS) == "ABCDEFGH"
    assert [one.stars for one in LETTERS] == [3, 3, 3, 2, 2, 1, 1, 1]
    assert [len(one.capabilities) for one in LETTERS] == [1, 2, 3, 4, 5, 4, 5, 6]
    assert all(one.capabilities < other.capabilities for one, other in pairwise(LETTERS[:5]))
    assert all("manipulation" in one.capabilities for one in LETTERS[5:])
    assert [one.letter for one in LETTERS if "selection" in one.capabilities] == ["H"]
    assert [one.letter for one in LETTERS if "distribution" in one.capabilities] == ["E"]


@pytest.mark.parametrize("seat", ["server", "wire"])
@pytest.mark.parametrize(
    ("knows", "active", "expected"),
    [
        ((), False, "B"),
        ((Knows.LOCAL_STEPS,), False, "C"),
        ((Knows.DEFENCE,), False, "C"),
        ((Knows.AUXILIARY,), False, "D"),
        ((Knows.LOCAL_STEPS, Knows.DEFENCE, Knows.AUXILIARY), False, "D"),
        ((), True, "F"),
        ((Knows.LOCAL_STEPS,), True, "F"),
        ((Knows.AUXILIARY,), True, "G"),
    ],
)
def test_what_is_known_decides(seat, knows, active, expected):
    assert letter(*knows, seat=seat, active=active) == expected
    # What no letter speaks of changes none.
    assert letter(*knows, Knows.LABELS, Knows.HINTS, Knows.KEYS, seat=seat, active=active) == expected


@pytest.mark.parametrize("seat", ["client-2", "feature-party", "label-party"])
def test_who_sees_no_single_update_has_no_letter(seat):
    assert letter(Knows.AUXILIARY, seat=seat) is None


def test_a_letter_names_itself():
    assert str(LETTERS[3]) == "D (data-enhanced eavesdropper, ★★☆)"
