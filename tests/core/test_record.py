"""Readings and records: what is judged, and what identifies a cell."""

import pytest

from leaktight.core.metric import Reading


@pytest.mark.parametrize(
    ("leaks", "value", "low", "high", "beats"),
    [
        ("high", 20.0, 15.0, 25.0, True),
        ("high", 20.0, 9.0, 25.0, False),
        ("low", 1.0, 0.5, 5.0, True),
        ("low", 1.0, 0.5, 12.0, False),
        ("high", 20.0, None, None, False),
        (None, 20.0, 15.0, 25.0, False),
    ],
)
def test_chance_is_beaten_by_the_whole_interval(leaks, value, low, high, beats):
    assert Reading(name="x", value=value, low=low, high=high, chance=10.0, leaks=leaks).beats_chance() is beats


def test_without_a_chance_level_nothing_is_beaten():
    assert not Reading(name="x", value=5.0, leaks="high").beats_chance()


def test_a_reading_survives_json():
    reading = Reading(
        name="psnr", value=31.5, low=30.0, high=33.0, n=4, chance=11.0, leaks="high", against="raw", each=(1.0, 2.0)
    )
    assert Reading.model_validate(reading.to_dict()) == reading


def test_a_record_without_class_names_is_written_as_ever(made):
    plain = made.record()
    assert "class_names" not in plain.to_dict()
    named = plain.model_copy(update={"class_names": ("cat", "dog")})
    assert named.to_dict()["class_names"] == ["cat", "dog"]
