"""What tests on captures share: networks by reference, and recorded messages."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from leaktight.captures import Recorder

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def own_code(monkeypatch):
    """Let `networks:linear` be found, as a person's own module in the current folder is."""
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture
def recorded(tmp_path):
    """Return a function that records gradients or updates of a network on random images, and the truth behind them."""
    import networks

    def record(name="linear", messages=2, examples=1, steps=0, mode=True, change=None, optimiser=None, **known):
        generator = torch.Generator().manual_seed(0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = getattr(networks, name)().train(mode)
        if isinstance(optimiser, str):
            known["optimiser"], optimiser = optimiser, None
        truth = tmp_path / "truth.safetensors"
        with Recorder(tmp_path / "seen", model, f"networks:{name}", truth=truth) as recorder:
            for _ in range(messages):
                # As in a Flower app, where each message begins with a new one.
                stepper = recorder.optimiser = optimiser(model) if optimiser else None
                count = examples * max(steps, 1)
                inputs = torch.rand(count, 1, 4, 4, generator=generator)
                labels = torch.randint(3, (count,), generator=generator)
                before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
                for some, classes in zip(inputs.chunk(max(steps, 1)), labels.chunk(max(steps, 1)), strict=True):
                    model.zero_grad()
                    nn.functional.cross_entropy(model(some), classes).backward()
                    if steps and stepper is not None:
                        stepper.step()
                    elif steps:
                        with torch.no_grad():
                            for parameter in model.parameters():
                                parameter -= 0.1 * parameter.grad
                if steps:
                    recorder.update(before, batch=(inputs, labels), **known)
                else:
                    sent = {key: parameter.grad for key, parameter in model.named_parameters()}
                    sent = {key: change(tensor) for key, tensor in sent.items()} if change else sent
                    recorder.gradient(sent, batch=(inputs, labels))
        return tmp_path / "seen"

    return record


@pytest.fixture
def forget_training():
    """Return a function after which nobody says in which mode a folder's messages were made, as on Flower."""

    def forget(folder):
        for path in folder.glob("*.capture.json"):
            path.write_text(json.dumps({**json.loads(path.read_text()), "training": None}))

    return forget
