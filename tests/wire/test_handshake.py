"""The handshake: what is told, what is compared, and where two parties meet."""

import itertools

import pytest

from leaktight.data.columns import Columns
from leaktight.models import MLP, Factory, WideDeep
from leaktight.wire.fault import PeerFault
from leaktight.wire.frame import Frame, Sort, pack_words
from leaktight.wire.handshake import (
    Hello,
    common_steps,
    digests,
    read_hello,
    require_agreement,
    require_bounded,
    require_small,
)

SETTINGS = digests({"rounds": 5, "cut": ""})
OWN = Hello(
    role="label-party", settings=SETTINGS, rows=10, test_rows=2, people="ab", training="cd", steps=[0], classes=2
)
THEM = Hello(
    role="feature-party", settings=SETTINGS, rows=10, test_rows=2, people="ab", training="cd", steps=[0], ids=[0, 5]
)


def test_a_handshake_comes_back_as_it_was_and_names_no_setting_and_no_column():
    frame = THEM.to_frame()
    assert read_hello(frame, "feature-party") == THEM
    assert b"wide_deep" not in frame.payload
    assert THEM.inputs == Columns(("0", "1"), (0, 5))
    assert Hello(**{**dict(THEM), "ids": [], "shape": [1, 8, 8]}).inputs == (1, 8, 8)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({}, "The `role` of Hello is missing"),
        ({**THEM.to_dict(), "rows": -1}, "The `rows` of Hello must be at least 0. Got -1"),
        ({**THEM.to_dict(), "rows": "10"}, "The `rows` of Hello must be"),
        ({**THEM.to_dict(), "rows": 10.5}, "The `rows` of Hello must be"),
        ({**THEM.to_dict(), "labels": [1]}, "Hello has no setting `labels`"),
        ({**THEM.to_dict(), "people": "\x1b[2J"}, "The `people` of Hello"),
        ({**THEM.to_dict(), "steps": list(range(100))}, "The `steps` of Hello"),
        ({**THEM.to_dict(), "ids": [2**24]}, "must be below"),
        ({**THEM.to_dict(), "shape": [1, 2, 3, 4]}, "The `shape` of Hello"),
    ],
)
def test_what_is_no_handshake_is_refused_in_one_line(words, sentence):
    with pytest.raises(PeerFault, match=sentence) as refused:
        read_hello(Frame(Sort.HELLO, 0, pack_words(words)), "feature-party")
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"role": "label-party"}, "The other side must be feature-party. Got label-party instead."),
        ({"settings": digests({"rounds": 6, "cut": ""})}, "They differ in `rounds`;"),
        ({"settings": digests({"rounds": 5})}, "They differ in `cut`;"),
        ({"rows": 11}, "training rows of the same people. label-party has 10, feature-party 11"),
        ({"test_rows": 0}, "test rows of the same people. label-party has 2, feature-party 0"),
        ({"people": "ac"}, "their ids differ. Compare the ids."),
        ({"people": ""}, "Name an `id` column on both sides or on none."),
        ({"training": "ce"}, "feature-party has begun another one."),
    ],
)
def test_every_difference_is_named(change, sentence):
    require_agreement(OWN, THEM, "feature-party")
    require_agreement(OWN, Hello(**{**dict(THEM), "training": ""}), "feature-party")
    with pytest.raises(PeerFault, match=sentence):
        require_agreement(OWN, Hello(**{**dict(THEM), **change}), "feature-party")


def test_two_parties_meet_at_the_latest_steps_that_fit():
    for feature in itertools.combinations(range(5), 2):
        for label in itertools.combinations(range(5), 2):
            fitting = [(theirs, ours) for ours in feature for theirs in label if theirs in (ours, ours + 1)]
            if fitting:
                ours, theirs = common_steps(feature, label)
                assert (theirs, ours) == max(fitting)
            else:
                with pytest.raises(PeerFault, match="must have a step in common"):
                    common_steps(feature, label)


def test_a_party_that_has_lost_its_checkpoints_is_told_what_there_is():
    with pytest.raises(
        PeerFault, match="The feature party can resume from 0, the label party from 50 or 100; bring back"
    ):
        common_steps([0], [100, 50])


def test_the_other_party_does_not_decide_how_large_a_model_becomes():
    require_bounded(Columns(("a", "b"), (0, 1000)), 1000)
    with pytest.raises(PeerFault, match=r"at most 999 ids in all. Got 1000 instead; raise `most_ids`"):
        require_bounded(Columns(("a", "b"), (0, 1000)), 999)
    with pytest.raises(PeerFault, match=r"images must have at most 999 numbers. Got 1000000000"):
        require_bounded((1000, 1000, 1000), 999)
    with pytest.raises(PeerFault, match="must hold a column"):
        require_bounded(Columns((), ()), 999)


GIANT = (100, 316, 316)


def test_a_network_beyond_the_bound_is_refused_and_never_built(monkeypatch):
    parts = MLP.parts
    monkeypatch.setattr(MLP, "parts", lambda self, *of: [part for part in parts(self, *of) if on_meta(part)])
    require_small(MLP(), (1, 8, 8), 2, most=10_000)
    with pytest.raises(
        PeerFault, match=r"must have at most 150000000 parameters\. By the other party's hello it has 1278157186;"
    ):
        require_small(MLP(), GIANT, 2, most=150_000_000)
    with pytest.raises(PeerFault, match="raise `most_parameters`"):
        require_small(WideDeep(embedding=64), Columns(("a",), (10_000_000,)), 2, most=150_000_000)
    with pytest.raises(PeerFault, match="it has 12908320"):
        require_small(MLP(), (64,), 100_000, most=10_000_000)


def on_meta(part) -> bool:
    assert all(parameter.is_meta for parameter in part.parameters())
    return True


def test_a_function_of_unknown_size_takes_examples_of_a_bounded_size(monkeypatch):
    monkeypatch.setattr(Factory, "size", lambda *_: None)
    own = Factory(function="leaktight.models.factory:example")
    require_small(own, (3, 512, 512), 2, most=10)
    with pytest.raises(PeerFault, match=r"must have at most 1048576 numbers\. Got 9985600 instead"):
        require_small(own, GIANT, 2, most=10)


def test_a_label_party_refuses_a_giant_hello(sides, monkeypatch):
    label, _ = sides
    monkeypatch.setattr("leaktight.wire.label_side.label_half", lambda *_, **__: pytest.fail("it was built"))
    monkeypatch.setattr(label, "common", label.common.model_copy(update={"model": MLP()}))
    monkeypatch.setattr(label, "_party", None)
    them = Hello(role="feature-party", settings={}, rows=1, test_rows=0, steps=[0], shape=list(GIANT))
    with pytest.raises(PeerFault, match="must have at most 150000000 parameters"):
        label._build_party(them)


def test_a_feature_party_refuses_a_giant_number_of_classes(sides, monkeypatch):
    _, feature = sides
    monkeypatch.setattr("leaktight.wire.feature_side.feature_half", lambda *_, **__: pytest.fail("it was built"))
    monkeypatch.setattr(feature, "common", feature.common.model_copy(update={"model": WideDeep(hidden=(4096,))}))
    them = Hello(role="label-party", settings={}, rows=1, test_rows=0, steps=[0], training="ab", classes=100_000)
    with pytest.raises(PeerFault, match="must have at most 150000000 parameters"):
        feature._build_party(them)
