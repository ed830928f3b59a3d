"""A peer that is not what it must be gets one sentence; then the right one comes, as if nothing had happened."""

import queue
import socket
import time

import grpc
import pytest
import torch

from leaktight.core.certificates import make_certificates
from leaktight.learning.label_party import LabelParty
from leaktight.wire.feature_side import FeatureSide
from leaktight.wire.frame import HEADER, Frame, Sort, pack_tensors, pack_words, read_frame, unpack_tensors, unpack_words
from leaktight.wire.label_side import LabelSide

ROLES = ("label-party", "feature-party")
END = object()


def reply(address, content, version="v1"):
    """Send raw bytes to a label party, and return the sentence that comes back: its own, or gRPC's status."""
    for _ in range(50):
        answer = reply_once(address, content, version)
        # It has not yet done with the one before.
        if answer is not grpc.StatusCode.UNAVAILABLE:
            return answer
        time.sleep(0.1)
    return answer


def reply_once(address, content, version):
    waiting = queue.Queue()
    waiting.put(content)

    def requests():
        while (content := waiting.get()) is not END:
            yield content

    with grpc.insecure_channel(address) as channel:
        method = channel.stream_stream(f"/leaktight.{version}.Split/feature-party")
        responses = method(requests(), wait_for_ready=True, timeout=20)
        try:
            for response in responses:
                frame = read_frame(response, "label-party", 1 << 20)
                if frame.sort is Sort.FAULT:
                    return unpack_words(frame.payload, "label-party")["sentence"]
        except grpc.RpcError as error:
            return error.code()
        finally:
            waiting.put(END)
    return None


def test_strangers_are_refused_with_one_sentence_and_the_training_goes_on(pair, port, reference, identical):
    waiting = pair.start("label-party")
    address = f"127.0.0.1:{port}"
    nested = "[" * 100_000
    cases = {
        b"": "must have a header of 9 bytes. Got 0",
        b"GET / HTTP/1.1\r\n\r\n and more": "must be of a known sort. Got 71 instead; is it leaktight?",
        HEADER.pack(99, 0): "must be of a known sort. Got 99",
        HEADER.pack(Sort.HELLO, 0) + bytes(2 << 20): "must have at most 1048576 bytes. Got 2097152 instead",
        HEADER.pack(Sort.HELLO, -7): "must be at least -1. Got -7",
        Frame(Sort.HELLO, 0, b"no safetensors").to_bytes(): "must be words as leaktight packs them",
        Frame(
            Sort.HELLO, 0, pack_words({"role": "x"})
        ).to_bytes(): "must be a whole handshake. The `settings` of Hello is missing",
        Frame(
            Sort.HELLO, 0, pack_words({"role": "x"}).replace(b'"x', nested.encode())[: 1 << 19]
        ).to_bytes(): "must be words",
        Frame(Sort.ACTIVATIONS, 0, pack_tensors({})).to_bytes(): "must send a frame of sort HELLO now. Got ACTIVATIONS",
    }
    for content, sentence in cases.items():
        answer = reply(address, content)
        assert sentence in answer
        assert answer.count("\n") == 0
    # gRPC itself turns away another version of the protocol, and what is beyond its limit.
    assert reply(address, b"", version="v2") is grpc.StatusCode.UNIMPLEMENTED
    assert reply(address, b"\0" * (65 << 20)) in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED)
    assert pair.start("feature-party").result().steps == waiting.result().steps == 60
    assert sum(sentence.startswith("Refused: ") for sentence in waiting.sentences) == len(cases)
    for role in ROLES:
        assert identical(pair.state(role)["party"], reference.states[role])


def spoilt(monkeypatch, change, side=FeatureSide, at=25):
    """Have a dishonest party send something else than it made for a step, past its own guard."""

    def send(self, connection, frame):
        tensors = unpack_tensors(frame.payload, "nobody") if frame.step == at else None
        payload = (
            frame.payload if tensors is None else pack_tensors({name: change(rows) for name, rows in tensors.items()})
        )
        connection.send(Frame(frame.sort, frame.step, payload))

    monkeypatch.setattr(side, "send", send)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows * torch.nan, "must be finite numbers. Got NaN or infinite values in 16 of 16 rows."),
        (lambda rows: rows[:, :3], r"must have rows of shape \(6,\). Got \(3,\) instead."),
        (lambda rows: rows.repeat(2, 1), "must have 16 rows, one for each example of the batch. Got 32 instead."),
        (lambda rows: rows.repeat(30_000, 1), r"must have at most 1048576 bytes. Got 11520\d+ instead."),
    ],
)
def test_activations_that_are_wrong_change_nothing(pair, reference, identical, monkeypatch, change, sentence):
    waiting = pair.start("label-party")
    with monkeypatch.context() as patched:
        spoilt(patched, change)
        wrong = pair.start("feature-party")
        wrong.join()
    with pytest.raises(Exception, match=f"label-party does not continue: .*{sentence}"):
        raise wrong.error
    before = pair.checkpoint("label-party").read_bytes()
    assert pair.state("label-party")["party"]["step"] == 20
    right = pair.start("feature-party")
    right.result()
    waiting.result()
    assert pair.checkpoint("label-party").read_bytes() != before
    for role in ROLES:
        assert identical(pair.state(role)["party"], reference.states[role])


def test_other_activations_for_a_step_that_was_answered_get_no_second_answer(pair, monkeypatch):
    """The noise of a step is drawn again when it is played again: two answers would tell of the labels."""
    waiting = pair.start("label-party")
    with monkeypatch.context() as patched:
        spoilt(patched, lambda rows: rows * torch.nan)
        pair.start("feature-party").join()
    pair.checkpoint("feature-party").with_suffix(".kept").write_bytes(pair.checkpoint("feature-party").read_bytes())
    with monkeypatch.context() as patched:
        spoilt(patched, lambda rows: rows + 1, at=22)
        greedy = pair.start("feature-party")
        greedy.join()
    assert "must send the activations of step 22 as before" in str(greedy.error)
    pair.start("feature-party").result()
    waiting.result()


def test_another_gradient_for_a_step_that_was_applied_gets_no_other_activations(pair, monkeypatch):
    """The feature party draws its noise again, too: two answers would tell of the features."""
    pair.feature["defence"] = {"kind": "gaussian_noise", "std": 0.1}
    waiting = pair.start("label-party")
    with monkeypatch.context() as patched:
        spoilt(patched, lambda rows: rows * torch.nan)
        pair.start("feature-party").join()
    with monkeypatch.context() as patched:
        spoilt(patched, lambda rows: rows + 1, LabelSide, at=22)
        careful = pair.start("feature-party")
        careful.join()
    assert "label-party must send the gradient of step 22 as before" in str(careful.error)
    assert pair.state("feature-party")["party"]["step"] == 20
    assert (
        pair.checkpoint("feature-party").with_name("feature-party.safetensors.replay").stat().st_mode & 0o777 == 0o600
    )
    pair.start("feature-party").result()
    waiting.result()


def test_an_answer_that_comes_out_otherwise_is_not_sent_again(pair, monkeypatch):
    """The difference of two answers under the same noise is free of it, whatever made them differ."""
    pair.label["wire"]["patience"] = 5.0
    waiting = pair.start("label-party")
    with monkeypatch.context() as patched:
        spoilt(patched, lambda rows: rows * torch.nan)
        pair.start("feature-party").join()
    honest, sent = LabelParty.respond, []

    def respond(self, message):
        answer = honest(self, message)
        sent.append(answer.round)
        return answer.map(lambda rows: rows + 1e-6) if answer.round == 22 else answer

    with monkeypatch.context() as patched:
        patched.setattr(LabelParty, "respond", respond)
        peer = pair.start("feature-party")
        waiting.join()
        peer.join()
    assert (
        "The answer to step 22 must be the bytes that were sent before. It came out different and was not sent"
        in str(waiting.error)
    )
    assert sent[-1] == 22
    assert "label-party has stopped." in str(peer.error)


@pytest.mark.parametrize("role", ROLES)
def test_nobody_goes_back_to_the_beginning_because_the_other_one_has_lost_its_checkpoints(pair, role):
    """A step before the oldest checkpoint would be answered again, and nobody remembers for what it was answered first."""
    for one in pair.run().values():
        one.result()
    other = "feature-party" if role == "label-party" else "label-party"
    for path in pair.folder.glob(f"{role}*"):
        path.unlink()
    pair.label["wire"]["patience"] = 1.0
    for document in pair.documents.values():
        document["scenario"]["rounds"] = 80
    both = pair.run()
    sentence = "must have a step in common" if role == "feature-party" else "has begun another one"
    assert sentence in str(both["feature-party"].error)
    assert pair.state(other)["party"]["step"] == 60


def test_a_gradient_that_is_wrong_stops_the_feature_party_and_changes_nothing(pair, monkeypatch):
    honest = LabelParty.respond
    pair.label["wire"]["patience"] = 1.0
    with monkeypatch.context() as patched:
        patched.setattr(
            LabelParty,
            "respond",
            lambda self, message: (
                sent if (sent := honest(self, message)).round < 15 else sent.map(lambda rows: rows / 0)
            ),
        )
        both = pair.run()
    assert "The gradient of step 15 from label-party must be finite" in str(both["feature-party"].error)
    assert any(
        "feature-party does not continue: The gradient of step 15" in sentence
        for sentence in both["label-party"].sentences
    )
    assert pair.state("feature-party")["party"]["step"] == 10


def test_what_goes_wrong_with_the_label_party_itself_is_not_told_to_the_other_one(pair, monkeypatch):
    from leaktight.core.errors import InvalidValue

    def respond(self, message):
        raise InvalidValue("Person p0007 bought nothing.")

    monkeypatch.setattr(LabelParty, "respond", respond)
    both = pair.run()
    assert str(both["label-party"].error) == "Person p0007 bought nothing."
    assert str(both["feature-party"].error) == "label-party does not continue: label-party has stopped."


@pytest.fixture
def over_tls(pair, certificates):
    for role, document in pair.documents.items():
        document["wire"] |= {"insecure": False, "certificates": str(certificates[role].key.parent), "patience": 10.0}
    return pair


def test_a_peer_without_the_right_certificate_is_refused_with_one_sentence(over_tls, certificates, tmp_path, port):
    waiting = over_tls.start("label-party")
    strange = make_certificates(tmp_path / "strange", ROLES)["feature-party"].key.parent
    over_tls.feature["wire"]["certificates"] = str(strange)
    stranger = over_tls.start("feature-party")
    stranger.join()
    assert str(stranger.error).startswith(
        f"The certificate at 127.0.0.1:{port} must be of label-party, by the same authority."
    )
    # Who trusts everybody, but has no certificate that this authority signed.
    (tmp_path / "mixed").mkdir()
    for name, source in (
        ("authority", certificates["feature-party"].key.parent),
        ("certificate", strange),
        ("key", strange),
    ):
        (tmp_path / "mixed" / f"{name}.pem").write_bytes((source / f"{name}.pem").read_bytes())
    over_tls.feature["wire"]["certificates"] = str(tmp_path / "mixed")
    mixed = over_tls.start("feature-party")
    mixed.join()
    assert str(mixed.error).endswith("Check that both sides have certificates of one authority.")
    # Without any certificate, and with that of the wrong party.
    authority = certificates["label-party"].authority.read_bytes()
    named = [("grpc.ssl_target_name_override", "label-party")]
    bare = grpc.ssl_channel_credentials(authority)
    with grpc.secure_channel(f"127.0.0.1:{port}", bare, named) as channel, pytest.raises(grpc.RpcError) as refused:
        next(channel.stream_stream("/leaktight.v1.Split/feature-party")(iter([b""]), timeout=5))
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    over_tls.feature["wire"]["certificates"] = str(certificates["label-party"].key.parent)
    twin = over_tls.start("feature-party")
    twin.join()
    assert (
        str(twin.error)
        == "label-party does not continue: The certificate must be of feature-party. It is of another one."
    )
    over_tls.feature["wire"]["certificates"] = str(certificates["feature-party"].key.parent)
    over_tls.start("feature-party").result()
    waiting.result()


def test_a_party_without_tls_is_not_let_in(over_tls, port):
    waiting = over_tls.start("label-party")
    over_tls.feature["wire"] |= {"insecure": True, "certificates": ""}
    plain = over_tls.start("feature-party")
    plain.join()
    assert f"127.0.0.1:{port}" in str(plain.error)
    assert "certificates" in str(plain.error)
    over_tls.feature["wire"] |= {
        "insecure": False,
        "certificates": over_tls.label["wire"]["certificates"].replace("label", "feature"),
    }
    over_tls.start("feature-party").result()
    waiting.result()


def test_nobody_there_and_no_free_port(pair, port):
    pair.feature["wire"]["patience"] = 0.3
    alone = pair.start("feature-party")
    alone.join()
    assert (
        str(alone.error) == f"Nobody answers at 127.0.0.1:{port}: connection refused. Start label-party, or raise "
        "`patience`."
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        late = pair.start("label-party")
        late.join()
    assert "cannot be listened at" in str(late.error)
