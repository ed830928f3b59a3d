"""Other data and other settings over the wire: each the same as in one process."""

import threading

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import LeaktightError
from leaktight.data import RareDigit
from leaktight.learning import Split
from leaktight.learning.exchange import play
from leaktight.models import MLP
from leaktight.wire.connection import Connection
from leaktight.wire.fault import PeerFault
from leaktight.wire.feature_side import FeatureSide
from leaktight.wire.frame import Frame, Sort
from leaktight.wire.handshake import Hello

ROLES = ("label-party", "feature-party")


def trained(keyed, split):
    """Return the final states of a training run in one process, and the loss of each step."""
    feature, label = keyed(split, split.data.load(), Undefended())
    losses = []
    play(feature, label, label.opening(), split.rounds, lambda *_: losses.append(label.last.loss.item()))
    return {party.name: party.state() for party in (feature, label)}, losses


@pytest.mark.parametrize(
    ("form", "label_columns"),
    [("image", ()), ("numbers", ("r0*", "r1*")), ("numbers", ())],
    ids=["image", "both", "labels-alone"],
)
def test_a_whole_data_set_is_dealt_out_as_in_one_process(pair, identical, keyed, form, label_columns):
    split = Split(
        data=RareDigit(form=form),
        model=MLP(hidden=(8,)),
        label_party=label_columns,
        rounds=12,
        batch_size=32,
        device="cpu",
    )
    for document in pair.documents.values():
        document["scenario"] = {
            "data": {"kind": "rare_digit", "form": form},
            "model": {"kind": "mlp", "hidden": [8]},
            "label_party": list(label_columns),
            "rounds": 12,
            "batch_size": 32,
        }
    del pair.label["defence"]
    for one in pair.run().values():
        one.result()
    states, losses = trained(keyed, split)
    assert pair.state("label-party")["losses"].tolist() == losses
    for role in ROLES:
        assert identical(pair.state(role)["party"], states[role])


def test_labels_alone_without_test_rows_and_aligned_by_order(pair, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{n % 7},{n % 5}\n" for n in range(40)))
    (tmp_path / "y.csv").write_text("y\n" + "".join(f"{int(n % 7 > 3)}\n" for n in range(40)))
    for role, name in (("label-party", "y"), ("feature-party", "x")):
        pair.documents[role]["scenario"]["data"] = {"kind": "party_table", "path": str(tmp_path / f"{name}.csv")}
    pair.label["scenario"]["data"]["label"] = "y"
    outcomes = {role: one.result() for role, one in pair.run().items()}
    assert outcomes["label-party"].readings == ()
    assert outcomes["label-party"].steps == 60
    losses = pair.state("label-party")["losses"]
    assert losses[-10:].mean() < losses[:10].mean()


def test_with_a_checkpoint_at_every_step_nothing_is_played_twice(pair, reference, identical, monkeypatch):
    for document in pair.documents.values():
        document["wire"]["every"] = 1
    taken = []
    honest = FeatureSide.is_due

    def is_due(self):
        taken.append(self.party.step)
        if self.party.step == 30 and taken.count(30) == 1:
            self.checkpoint()
            raise KeyboardInterrupt
        return honest(self)

    waiting = pair.start("label-party")
    with monkeypatch.context() as patched:
        patched.setattr(FeatureSide, "is_due", is_due)
        patched.setattr("threading.excepthook", lambda _: None)
        first = pair.start("feature-party")
        first.join()
        pair.start("feature-party").result()
    waiting.result()
    assert taken == list(range(1, 61))
    assert any(
        "feature-party does not continue: feature-party has stopped unexpectedly." in sentence
        for sentence in waiting.sentences
    )
    for role in ROLES:
        assert identical(pair.state(role)["party"], reference.states[role])


def test_a_message_that_cannot_be_sent_within_the_limit_is_told_to_its_owner(pair):
    pair.feature["wire"]["largest"] = 0.001
    pair.label["wire"]["patience"] = 1.0
    both = pair.run()
    assert "The `largest` of Wire must be at least 0.00" in str(both["feature-party"].error)
    assert any("feature-party has stopped." in sentence for sentence in both["label-party"].sentences)


def test_a_feature_party_may_mend_its_columns_as_long_as_nothing_was_learned(pair, reference, identical, monkeypatch):
    waiting = pair.start("label-party")
    right = pair.feature["scenario"]["data"].copy()
    pair.feature["scenario"]["data"]["ignore"] = ["x1"]
    with monkeypatch.context() as patched:
        # It shakes hands, and then its own disk is full.
        patched.setattr(FeatureSide, "extra_state", lambda self: full())
        wrong = pair.start("feature-party")
        wrong.join()
    assert str(wrong.error) == "The disk is full."
    pair.feature["scenario"]["data"] = right
    pair.start("feature-party").result()
    waiting.result()
    for role in ROLES:
        assert identical(pair.state(role)["party"], reference.states[role])
    honest = {
        name: bytes(pair.state("feature-party")[name].tolist()).decode() for name in ("settings", "defence", "data")
    }
    # Now something was learned, and a peer that does not check its own rows comes back.
    pair.feature["scenario"]["data"] = {**right, "ignore": ["x1"]}
    waiting = pair.start("label-party")
    with monkeypatch.context() as patched:
        patched.setattr(FeatureSide, "_source_digests", property(lambda self: honest))
        other = pair.start("feature-party")
        other.join()
    assert str(other.error).endswith(
        "feature-party must come back with the columns that it had before. Got others instead."
    )
    pair.feature["scenario"]["data"] = right
    pair.start("feature-party").result()
    waiting.result()


def full():
    raise LeaktightError("The disk is full.")


def test_a_label_party_must_say_which_training_and_how_many_classes(sides):
    label, feature = sides
    for change in ({"classes": 1}, {"classes": 2, "training": ""}):
        words = {**dict(label.hello(classes=2)), **change}
        connection = Connection("label-party")
        connection.feed([Hello(**words).to_frame().to_bytes()])
        with pytest.raises(Exception, match="must name a training run of at least 2 classes"):
            feature.converse(connection)
        connection.close()
    assert feature.party is None


def test_a_large_gradient_right_behind_the_hello_is_not_turned_away(sides):
    """A label party that is ahead sends its last gradient again at once, before the feature party knows the shape."""
    label, feature = sides
    connection = Connection("label-party", patience=5.0)

    def contents():
        next(connection.drain())
        yield label.hello(classes=2).to_frame().to_bytes()
        yield Frame(Sort.GRADIENT, -1, bytes(2 << 20)).to_bytes()

    threading.Thread(target=connection.feed, args=(contents(),), daemon=True).start()
    with pytest.raises(PeerFault, match="must be a whole safetensors file"):
        feature.converse(connection)
    connection.close()


def test_the_defence_of_the_feature_party_is_its_own(pair, reference):
    pair.feature["defence"] = {"kind": "gaussian_noise", "std": 0.5}
    for one in pair.run().values():
        one.result()
    losses = pair.state("label-party")["losses"]
    assert torch.isfinite(losses).all()
    assert losses[0].item() != reference.losses[0]
