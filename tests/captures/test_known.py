"""What is known of how a message was made: nothing is taken for 0 that nobody said."""

import pytest

from leaktight.captures.known import Known, phrase_assumptions, unknown_settings
from leaktight.core.errors import InvalidValue


def test_nothing_is_known_unless_it_is_said():
    assert all(value is None for _, value in Known())


def test_an_optimiser_is_known_by_its_plain_name():
    assert Known(optimiser="torch.optim.AdamW").optimiser == "adamw"
    with pytest.raises(InvalidValue, match="`optimiser` of Known"):
        Known(optimiser="my optimiser")


@pytest.mark.parametrize("known", [{"mean": (0.5,)}, {"std": (0.5,)}, {"mean": (0.5,), "std": ()}])
def test_a_mean_needs_a_deviation(known):
    with pytest.raises(InvalidValue, match="There must be as many `mean` as `std`"):
        Known(**known)


def test_no_normalisation_is_something_else_than_an_unknown_one():
    assert (Known(mean=()).mean, Known(mean=()).std, Known().mean) == ((), (), None)
    assert "mean" not in unknown_settings(Known(std=[]), update=False)


def test_what_is_stated_fills_gaps_and_contradicts_nothing():
    seen = Known(learning_rate=0.1, momentum=0.0)
    assert seen.fill(Known(weight_decay=0.0, momentum=0.0)).weight_decay == 0
    assert seen.fill(Known()) is seen
    with pytest.raises(InvalidValue, match=r"Got `momentum` 0\.9 where 0\.0 was recorded"):
        seen.fill(Known(momentum=0.9))


@pytest.mark.parametrize(
    ("known", "update", "unknown"),
    [
        ({}, False, ["shape", "mean"]),
        ({}, True, ["shape", "local_steps", "learning_rate", "optimiser", "momentum", "weight_decay", "mean"]),
        ({"optimiser": "adam"}, True, ["shape", "local_steps", "learning_rate", "weight_decay", "mean"]),
        (
            {"local_steps": 1, "dataset_size": 9},
            True,
            ["shape", "learning_rate", "optimiser", "weight_decay", "examples", "mean"],
        ),
    ],
)
def test_what_matters_is_asked_for(known, update, unknown):
    assert unknown_settings(Known(**known), update) == unknown


def test_assumptions_are_words():
    assert phrase_assumptions(["shape", "optimiser", "examples"]) == (
        "SGD and one pass over the examples that a sender reports"
    )
