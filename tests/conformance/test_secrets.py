"""Canaries: what a party keeps for itself is in no message, log, report, export, capture or shared model, whatever the defence."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from leaktight.captures import Recorder
from leaktight.cli.main import main
from leaktight.core.defence import Defence
from leaktight.core.errors import LeaktightError
from leaktight.core.local import SPENT, Local
from leaktight.core.message import Kind, Message
from leaktight.core.scenario import flatten
from leaktight.core.secure import SecretKey
from leaktight.defences import TopK
from leaktight.learning.client import Client
from leaktight.learning.federated import Federated
from leaktight.testing.conformance import installed_classes, sample
from leaktight.testing.toys import toy_batch, toy_task

FEW = 4
"""So many numbers of a secret one after the other are no coincidence."""
PLAN = """
[scenario]
rounds = 2
participants = 2
data = "digits"
model = {kind = "mlp", hidden = [8]}
[[defences]]
kind = "none"
[[attacks]]
kind = "analytic"
[grid]
victims = 2
"""
KEEPS = ("class_keys", "polarization", "top_k")
"""The defences that keep tensors between messages."""


def shows(content: bytes, secret: Tensor) -> bool:
    """Whether a file or a text holds numbers of a secret, one after the other: as floats, or written out to six digits or all."""
    numbers = secret.detach().flatten().to(torch.float32).tolist()
    few = FEW if len(set(numbers)) > 2 else 64
    for at in range(0, max(len(numbers) - few, 0) + 1, max(len(numbers) // 50, 1)):
        some = numbers[at : at + few]
        if len(set(some)) < 2:
            continue
        raw = [struct.pack(f"<{len(some)}{code}", *some) for code in "fd"]
        if any(form in content for form in raw):
            return True
        if few == FEW and any(
            all(format(one, form).encode() in content for one in some) for form in (".6g", ".17g", "")
        ):
            return True
    return False


def secrets_of(clients: list[Client]) -> Iterator[tuple[str, Tensor]]:
    """Return what parties keep that has something to tell; what was spent follows from public settings."""
    for client in clients:
        for name, value in flatten(client.local.memory).items():
            if (
                isinstance(value, Tensor)
                and value.numel() >= FEW
                and len(torch.unique(value)) > 1
                and SPENT not in name.split("/")
            ):
                yield f"{client.name}: {name}", value


def defence_of(kind: str) -> Defence:
    found = TopK(share=0.3, residual=True) if kind == "top_k" else sample(installed_classes("defence")[kind])
    assert isinstance(found, Defence)
    return found


def outputs(folder: Path, said: str) -> Iterator[tuple[str, bytes]]:
    yield "the terminal and the log", said.encode()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()


def test_every_defence_that_keeps_tensors_is_looked_at() -> None:
    """A defence that is added and keeps something has to be looked at here too."""
    keeps = []
    for kind, made in installed_classes("defence").items():
        defence = defence_of(kind) if kind in KEEPS else sample(made)
        if defence is None or not _is_federated(defence):
            continue
        if list(secrets_of([_answered(defence, Local("client-0", seed=0, key=SecretKey.new()))[0]])):
            keeps.append(kind)
    assert sorted(keeps) == sorted(KEEPS)


@pytest.mark.parametrize("kind", KEEPS)
def test_what_is_kept_is_in_nothing_that_may_be_passed_on(
    kind: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients: list[Client] = []
    make = Federated.client

    def make_client(self: Federated, *args: object, **named: object) -> Client:
        clients.append(make(self, *args, **named))  # type: ignore[arg-type]
        return clients[-1]

    monkeypatch.setattr(Federated, "client", make_client)
    caplog.set_level(0)
    settings = [
        f"{name} = {json.dumps(value)}" for name, value in defence_of(kind).to_dict().items() if value is not None
    ]
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace('kind = "none"', "\n".join(settings)))
    private, public = tmp_path / "audit", tmp_path / "public"
    public.mkdir()
    assert main(["train", str(plan), "--defence", kind, "--out", str(public / "model")]) == 0
    trained = [dict(secrets_of([client])) for client in clients]
    assert main(["audit", str(plan), "--workers", "1", "--out", str(private)]) == 0
    assert main(["report", str(private), "--out", str(public / "report.html")]) == 0
    for form in ("csv", "jsonl"):
        assert main(["export", str(private), "--format", form, "--out", str(public / f"records.{form}")]) == 0
    (public / "capture").mkdir()
    client, sent = _answered(defence_of(kind), Local("client-0", seed=5))
    with Recorder(public / "capture" / "seen", client.public.model, shape=client.public.shape) as recorder:
        recorder.gradient(dict(sent.tensors), examples=2)
    secrets = [*secrets_of(clients), *secrets_of([client]), *(pair for found in trained for pair in found.items())]
    assert secrets
    said = capsys.readouterr()
    for where, content in outputs(public, said.out + said.err + caplog.text):
        for name, secret in secrets:
            # The model of a finished training says which keys its owners revealed.
            if not (name.endswith("keys") and where in REVEALED):
                assert not shows(content, secret), f"{name} shows in {where}"
    assert {
        path.stat().st_mode & 0o777 for path in private.rglob("*") if path.is_file() and path.suffix != ".html"
    } <= {0o600}


REVEALED = ("model.safetensors", "reveals.safetensors", "keys.safetensors")


def test_a_secret_that_shows_is_found() -> None:
    secret = torch.randn(3, 20, generator=torch.Generator().manual_seed(0))
    text = json.dumps({"notes": secret[1].tolist()}).encode()
    assert shows(text, secret)
    assert shows(b"head" + secret.numpy().tobytes(), secret)
    assert shows(f"{secret[0, 4]:.6g} {secret[0, 5]:.6g} {secret[0, 6]:.6g} {secret[0, 7]:.6g}".encode(), secret)
    assert not shows(torch.randn(1000, generator=torch.Generator().manual_seed(1)).numpy().tobytes(), secret)


def _is_federated(defence: Defence) -> bool:
    try:
        _answered(defence, Local("client-0", seed=0))
    except LeaktightError:
        return False
    return True


def _answered(defence: Defence, local: Local) -> tuple[Client, Message]:
    """Return a participant after one message, and the message."""
    public = defence.on_agree(toy_task())
    client = Client("client-0", public, toy_batch(8), defence, local, batch_size=2)
    return client, client.respond(Message(Kind.PARAMETERS, "server", "client-0", 0, public.public_parameters()))
