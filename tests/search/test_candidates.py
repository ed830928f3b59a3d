from __future__ import annotations

from collections import Counter

import pytest

from leaktight.core.random import stream
from leaktight.search.candidates import CandidatePolicy, candidate, canonical, choose, draw, draw_candidates
from leaktight.transforms.library import LIBRARY, same_as

EVERY = tuple(range(50))


def test_every_policy_of_at_most_k_functions_has_the_same_chance() -> None:
    rng = stream(0, "draws")
    counts = Counter(draw((3, 1), 3, rng) for _ in range(7000))
    assert len(counts) == 2 + 4 + 8
    assert min(counts.values()) > 400
    assert max(counts.values()) < 600


def test_most_policies_of_the_published_space_have_three_functions() -> None:
    rng = stream(0, "draws")
    lengths = Counter(len(draw(EVERY, 3, rng)) for _ in range(2000))
    assert lengths.keys() <= {1, 2, 3}
    assert lengths[3] / 2000 == pytest.approx(50**3 / 127_550, abs=0.015)


def test_all_functions_are_drawn_and_repetition_is_allowed() -> None:
    rng = stream(0, "draws")
    found = [draw(EVERY, 3, rng) for _ in range(1500)]
    assert {index for indices in found for index in indices} == set(EVERY)
    assert any(len(set(indices)) < len(indices) for indices in found)


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("3-1-7", (3, 1, 7)),
        ("43-18-18", (24, 18, 18)),
        ("42-28-42", (24, 24)),
        ("28", ()),
        ("39-28-3", (3,)),
        ("29-47", (0, 0)),
    ],
)
def test_canonical_form(text: str, acts: tuple[int, ...]) -> None:
    one = candidate(text)
    assert one.acts == acts == canonical(one.acts)
    assert str(one) == text


def test_the_canonical_form_knows_every_duplicate_of_the_library() -> None:
    for one in LIBRARY:
        for other in LIBRARY:
            same = (one.identity and other.identity) or (one.operation, one.value) == (other.operation, other.value)
            assert (canonical((one.index,)) == canonical((other.index,))) == same


def test_policies_that_do_the_same_are_one_candidate_by_the_first_of_them() -> None:
    found = draw_candidates(500, (24, 42, 43, 28), 2, stream(0, "candidates"))
    assert {one.acts for one in found} == {(24,), (24, 24)}
    assert len(found) == 2
    everything = draw_candidates(1500, EVERY, 3, stream(0, "candidates"))
    assert len({one.acts for one in everything}) == len(everything) < 1500
    assert all(one.acts == tuple(same_as(i) for i in one.indices if not LIBRARY[i].identity) for one in everything)


def test_the_same_stream_draws_the_same() -> None:
    assert (
        draw_candidates(50, EVERY, 3, stream(1))
        == draw_candidates(50, EVERY, 3, stream(1))
        != draw_candidates(50, EVERY, 3, stream(2))
    )


def names(found: tuple[CandidatePolicy, ...]) -> list[str]:
    return list(map(str, found))


def test_the_chosen_share_no_function() -> None:
    ranked = [candidate(text) for text in ("3-1-7", "3", "42-7", "43-18", "24", "0")]
    assert names(choose(ranked, 1)) == ["3-1-7"]
    assert names(choose(ranked, 2)) == ["3-1-7", "43-18"]
    assert names(choose(ranked, 3)) == ["3-1-7", "43-18", "0"]
    assert names(choose(ranked, 9)) == ["3-1-7", "43-18", "0"]
    assert names(choose(ranked, 2, first=(candidate("24"),))) == ["24", "3-1-7"]
    assert choose([], 2) == ()


def test_equal_functions_under_other_indices_are_shared_ones() -> None:
    """The paper's own choice `42-28-42` and `14-48-48` shifts up or down by the same amount twice."""
    assert names(choose(map(candidate, ("42-28-42", "14-48-48", "14")), 2)) == ["42-28-42", "14"]
