"""Two parties over gRPC: the training run of one process, bit by bit, whoever listens and whatever breaks between."""

import copy
import dataclasses
import time
from pathlib import Path

import pytest
import torch

from leaktight.core.scenario import flatten
from leaktight.defences import IsotropicNoise
from leaktight.learning.checkpoint import read_checkpoint
from leaktight.wire import parse_party_file
from leaktight.wire.feature_side import FeatureSide
from leaktight.wire.frame import Frame
from leaktight.wire.label_side import LabelSide
from leaktight.wire.side import Side

ROLES = ("label-party", "feature-party")


def ended(pair):
    both = pair.run()
    return {role: one.result() for role, one in both.items()}


def as_in_one_process(pair, reference, identical):
    assert pair.state("label-party")["losses"].tolist() == reference.losses
    for role in ROLES:
        assert identical(pair.state(role)["party"], reference.states[role]), role


def test_the_curve_and_both_halves_are_those_of_one_process(pair, reference, identical):
    outcomes = ended(pair)
    as_in_one_process(pair, reference, identical)
    assert outcomes["label-party"].readings == tuple(reading.without_outcomes() for reading in reference.utility)
    assert outcomes["feature-party"].readings == ()
    assert 60 * 16 * 6 * 4 < outcomes["label-party"].received == outcomes["feature-party"].sent


def test_over_tls_with_the_feature_party_listening(pair, certificates, reference, identical):
    for role, document in pair.documents.items():
        wire = document["wire"]
        wire["insecure"] = False
        wire["certificates"] = str(certificates[role].key.parent)
        wire["connect" if role == "label-party" else "listen"] = wire.pop(
            "listen" if role == "label-party" else "connect"
        )
    ended(pair)
    as_in_one_process(pair, reference, identical)


def test_checkpoints_are_for_their_owner_alone_and_hold_no_others_half(pair):
    ended(pair)
    files = [path for path in pair.folder.iterdir() if path.is_file()]
    assert len(files) == 8
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    names = {role: {name.split(".")[0] for name in pair.state(role)["party"]["model"]} for role in ROLES}
    assert names == {"feature-party": {"encoded", "linear1", "linear2"}, "label-party": {"deep", "wide"}}


def test_each_party_has_a_key_of_its_own_until_the_training_is_done(pair, monkeypatch):
    monkeypatch.undo()
    seen = {}

    def checkpoint(self, honest=Side.checkpoint):
        honest(self)
        seen.setdefault(self.role, pair.keys(self.role))

    monkeypatch.setattr(Side, "checkpoint", checkpoint)
    ended(pair)
    assert [[step for step, _ in keys] for keys in seen.values()] == [[0], [0]]
    assert len({key for keys in seen.values() for _, key in keys}) == 2
    for role in ROLES:
        assert pair.keys(role) == []
        assert not pair.checkpoint(role).with_name(f"{role}.safetensors.previous").exists()
        model = read_checkpoint(pair.folder / f"{role}.model.safetensors")
        assert identical_names(model, pair.state(role)["party"]["model"])


def identical_names(one, other):
    return flatten(one).keys() == flatten(other).keys()


def test_a_second_process_on_a_checkpoint_is_refused(pair):
    """Each would answer the same step for another question, with the same noise."""
    waiting = pair.start("label-party")
    wait_until(lambda: waiting.sentences)
    second = pair.start("label-party")
    second.join()
    assert "Another process uses" in str(second.error)
    pair.start("feature-party").result()
    waiting.result()


def stopped(pair, monkeypatch):
    """Play to step 25, where the feature party sends nonsense; the label party is then at step 25 with a checkpoint of step 20."""
    pair.label["wire"]["patience"] = 0.5
    waiting = pair.start("label-party")
    with monkeypatch.context() as patched:
        patched.setattr(
            FeatureSide,
            "send",
            lambda self, other, frame: other.send(frame if frame.step < 25 else Frame(frame.sort, 99)),
        )
        pair.start("feature-party").join()
    waiting.join()


def test_a_checkpoint_that_was_put_back_meets_no_old_noise(pair, monkeypatch):
    """Whoever brings back a copy of the files has the steps after it answered anew, for whatever it likes."""
    monkeypatch.undo()
    stopped(pair, monkeypatch)
    keys = []
    for _ in range(2):
        side = LabelSide(parse_party_file(pair.label))
        keys.append(
            (
                side.replay_guard.latest,
                side.keys.at(side.replay_guard.latest),
                side.keys.at(side.replay_guard.latest + 1),
            )
        )
        side.close()
    (latest, old, new), (again, same, newer) = keys
    assert latest == again == 24
    assert old == same
    assert len({old, new, newer}) == 3


def test_a_checkpoint_without_what_was_answered_is_refused(pair, monkeypatch):
    stopped(pair, monkeypatch)
    pair.checkpoint("label-party").with_name("label-party.safetensors.replay").unlink()
    again = pair.start("label-party")
    again.join()
    assert (
        "label-party.safetensors.replay` cannot be read: no such file or directory. It belongs to the checkpoint"
        in str(again.error)
    )


def wait_until(what):
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_training_can_be_prolonged_and_is_the_same_as_in_one_go(pair, reference, identical):
    for rounds in (25, 60):
        for role in ROLES:
            pair.documents[role]["scenario"]["rounds"] = rounds
        ended(pair)
    as_in_one_process(pair, reference, identical)


@pytest.mark.parametrize("compression", ["float16", "int8"])
def test_compression_sends_less_and_learns_about_the_same(pair, reference, compression):
    pair.feature["scenario"]["rounds"] = pair.label["scenario"]["rounds"] = 20
    for role in ROLES:
        pair.documents[role]["wire"]["compression"] = compression
    ended(pair)
    losses = pair.state("label-party")["losses"]
    assert losses.tolist() != reference.losses[:20]
    assert torch.allclose(losses, torch.tensor(reference.losses[:20]), atol=0.05)


def test_who_watches_sees_steps_bytes_and_response_times(pair):
    for role, party in pair.run().items():
        last = party.progress[-1]
        assert last.step == last.rounds == 60
        assert last.sent > 60 * 16 * 6 * 4
        assert last.response_time > 0
        assert (last.loss is None) == (role == "feature-party")


DISAGREEMENTS = {
    "They differ in `batch_size`, `cut`; compare": lambda d: d["scenario"].update(batch_size=20, cut="relu1"),
    "They differ in `every`; compare": lambda d: d["wire"].update(every=7),
    "They differ in `compression`; compare": lambda d: d["wire"].update(compression="int8"),
    "Name an `id` column on both sides or on none.": lambda d: d["scenario"]["data"].update(id="", ignore=["person"]),
    "test rows of the same people. label-party has 40, feature-party 0.": lambda d: d["scenario"]["data"].update(
        test_path=""
    ),
}


def test_parties_that_do_not_agree_say_so_and_nothing_is_written(pair, reference, identical):
    waiting = pair.start("label-party")
    for sentence, change in DISAGREEMENTS.items():
        other = type(pair)(pair.folder, copy.deepcopy(pair.documents))
        change(other.feature)
        other.feature["wire"]["checkpoint"] = str(pair.folder / "other.safetensors")
        wrong = other.start("feature-party")
        wrong.join()
        assert "label-party does not continue: Both parties must" in str(wrong.error)
        assert sentence in str(wrong.error)
        assert not list(pair.folder.glob("*.safetensors"))
    pair.start("feature-party").result()
    waiting.result()
    assert [sentence for sentence in waiting.sentences if sentence.startswith("Refused: ")] == [
        sentence for sentence in waiting.sentences if "Both parties must" in sentence
    ]
    as_in_one_process(pair, reference, identical)


def test_a_network_that_does_not_take_the_other_partys_columns_is_its_fault(pair):
    for role in ROLES:
        pair.documents[role]["scenario"]["model"] = "mlp"
    waiting = pair.start("label-party")
    wrong = pair.start("feature-party")
    wrong.join()
    assert "label-party does not continue: mlp takes numbers. Got ids in the column `3` instead" in str(wrong.error)
    for document in pair.documents.values():
        document["scenario"]["data"]["words"] = "one_hot"
    pair.start("feature-party").result()
    waiting.result()


def test_a_defence_without_a_place_is_refused_before_anybody_is_waited_for(pair):
    pair.label["defence"] = {"kind": "dp_sgd"}
    refused = pair.start("label-party")
    refused.join()
    assert "split learning has no place for that" in str(refused.error)
    assert refused.sentences == []


def test_two_label_parties_have_nothing_to_say_to_each_other(pair, port):
    waiting = pair.start("label-party")
    pair.label["wire"] = {**pair.feature["wire"], "checkpoint": str(pair.folder / "second.safetensors")}
    second = pair.start("label-party")
    second.join()
    assert str(second.error) == (
        f"The other side at 127.0.0.1:{port} must be feature-party of the same version of leaktight, waiting for this "
        "party. It is not."
    )
    pair.start("feature-party").result()
    waiting.result()


def test_a_checkpoint_of_other_settings_or_of_another_training_is_refused(pair):
    ended(pair)
    pair.label["wire"]["patience"] = 1.0
    pair.checkpoint("label-party").unlink()
    both = pair.run()
    assert "feature-party has begun another one" in str(both["feature-party"].error)
    pair.feature["scenario"]["cut"] = "relu1"
    again = pair.start("feature-party")
    again.join()
    assert "must be of a training run with these settings" in str(again.error)


def test_a_checkpoint_of_another_defence_is_refused(pair):
    """Under the old key, another deviation would answer old steps by a multiple of the same noise: labels would come out."""
    ended(pair)
    pair.label["defence"]["ratio"] = 1.0
    again = pair.start("label-party")
    again.join()
    assert "must be of a training run with this defence. It is of another one" in str(again.error)


def test_a_checkpoint_of_other_rows_is_refused(pair):
    ended(pair)
    path = Path(pair.label["scenario"]["data"]["path"])
    other = pair.folder / "other.csv"
    other.write_text(path.read_text().replace("yes", "maybe").replace("no", "yes").replace("maybe", "no"))
    pair.label["scenario"]["data"]["path"] = str(other)
    again = pair.start("label-party")
    again.join()
    assert "must be of a training run with these rows of its own. It is of another one" in str(again.error)


def test_the_noise_of_a_step_depends_on_the_defence(sides):
    label, _ = sides
    other = copy.copy(label)
    other.settings = dataclasses.replace(label.settings, defence=IsotropicNoise(ratio=1.0))
    other.keys = copy.copy(label.keys)
    other.keys.defence = other.settings.defence
    one, two = (side.local().draws.normals((8,)) for side in (label, other))
    assert not torch.equal(one, two)
    assert torch.equal(one, label.local().draws.normals((8,)))


def test_activations_that_are_too_large_end_the_peers_connection_and_not_the_label_party(pair):
    """The feature party's columns decide how large they are: whoever says so must not be able to end the other one's process."""
    pair.label["wire"]["patience"] = 3.0
    for role in ROLES:
        pair.documents[role]["scenario"]["model"] = {"kind": "wide_deep", "hidden": [100_000, 6]}
        pair.documents[role]["scenario"]["cut"] = "relu1"
        pair.documents[role]["wire"]["largest"] = 2
    waiting = pair.start("label-party")
    wrong = pair.start("feature-party")
    wrong.join()
    assert "The `largest` of Wire must be at least" in str(wrong.error)
    assert waiting.is_alive()
    assert any(sentence.startswith("Refused: The `largest` of Wire") for sentence in waiting.sentences)
    waiting.join()
