"""audit_model: whatever a program has goes in, and everything that is wrong with it is one sentence."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from leaktight import audit_model
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.task import Batch
from leaktight.data import Data
from leaktight.defences import GaussianNoise, TopK
from leaktight.running.store import Store


class Named(Dataset):
    """Images with names of their classes, normalised as is usual."""

    classes = ("cat", "dog", "frog")

    def __init__(self, inputs, labels):
        self.inputs, self.labels = (inputs - 0.5) / 0.25, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, at):
        return self.inputs[at], int(self.labels[at])


def plan_of(result):
    with Store.read(result.folder) as store:
        return store.plan()


def kinds_of(result):
    return [verdict.defence.kind for verdict in result.verdicts if verdict.leak == "images"]


@pytest.mark.parametrize(
    "form",
    [
        lambda x, y: (x, y),
        lambda x, y: [x.numpy(), y.numpy()],
        lambda x, y: ((255 * x).to(torch.uint8), y),
        lambda x, y: TensorDataset(x, y),
        lambda x, y: DataLoader(TensorDataset(x, y), batch_size=7, shuffle=True),
        lambda x, y: Data(Batch(x[:48], y[:48]), Batch(x[48:], y[48:]), 3),
        Named,
    ],
)
def test_data_in_every_form(network, arrays, cheap, form):
    result = audit_model(network, form(*arrays), [], **cheap)
    assert {record.status.value for record in result.records} == {"done"}
    assert result.verdicts[0].verdict == "leaks"


def test_images_of_other_units_are_read_as_exactly(network, arrays, cheap):
    result = audit_model(network, Named(*arrays), [], **cheap)
    [record] = [record for record in result.records if record.cell.purpose == "measure"]
    assert record.reading("psnr", "raw").value > 60
    assert record.class_names == ("cat", "dog", "frog")


def test_a_table_in_its_own_units(arrays, cheap):
    inputs = torch.randn(60, 5) * torch.tensor([1.0, 1000.0, 0.1, 1.0, 1.0]) + 20
    result = audit_model(nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3)), (inputs, arrays[1]), [], **cheap)
    [record] = [record for record in result.records if record.cell.purpose == "measure"]
    assert record.status.value == "done"
    assert record.readings


def test_the_network_stays_as_it_is(network, arrays, cheap):
    before, training = copy.deepcopy(network.state_dict()), network.training
    audit_model(network, arrays, [GaussianNoise(std=0.1)], **cheap)
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    assert (network.training, next(network.parameters()).grad) == (training, None)


def test_a_network_with_more_outputs_than_labels(arrays, cheap):
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    result = audit_model(network, arrays, [], **cheap)
    assert result.verdicts[0].verdict == "leaks"


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ([], []),
        ("top_k", ["top_k"]),
        (GaussianNoise(std=0.5), ["gaussian_noise"]),
        ({"kind": "gaussian_noise", "std": [0.1, 0.2]}, ["gaussian_noise"] * 2),
        (["top_k", GaussianNoise(std=0.5), {"kind": "pruning"}], ["top_k", "gaussian_noise", "pruning"]),
        ((TopK(share=share) for share in (0.1, 0.2)), ["top_k"] * 2),
    ],
)
def test_defences_as_values_kinds_or_settings(network, arrays, cheap, given, kinds):
    result = audit_model(network, arrays, given, **cheap)
    assert [defence.kind for defence in plan_of(result).defences] == kinds
    assert sorted(kinds_of(result)) == sorted(["none", *kinds])


def test_none_takes_the_defences_of_the_preset(network, arrays, cheap):
    found = [defence.kind for defence in plan_of(audit_model(network, arrays, **cheap)).defences]
    assert found == ["gaussian_noise"] * 3 + ["top_k", "dp_sgd"]


def test_public_examples_are_the_test_part(network, arrays, cheap):
    inputs, labels = arrays
    result = audit_model(network, (inputs[:40], labels[:40]), [], public=TensorDataset(inputs, labels), **cheap)
    assert result.records[0].reading("accuracy").n == 60


def test_the_same_folder_keeps_what_is_the_same(network, arrays, cheap, tmp_path, caplog):
    steps: list[object] = []
    settings = {**cheap, "progress": steps.append, "out": tmp_path / "audit"}
    first = audit_model(network, arrays, ["top_k"], **settings)
    assert steps
    steps.clear()
    second = audit_model(copy.deepcopy(network), arrays, ["top_k"], **settings)
    assert (steps, caplog.messages) == ([], [])
    assert second.summary == first.summary
    with torch.no_grad():
        next(network.parameters()).add_(0.1)
    audit_model(network, arrays, ["top_k"], **settings)
    assert steps
    assert "The model's initial parameters and what the model makes of a fixed batch changed" in caplog.text
    steps.clear()
    audit_model(network, (arrays[0] / 2, arrays[1]), ["top_k"], **settings)
    assert steps
    assert "The data changed" in caplog.text


def test_a_network_of_the_same_weights_that_computes_something_else_is_another(arrays, cheap, tmp_path):
    class Turned(nn.Sequential):
        def forward(self, inputs):
            return super().forward(inputs * self.sign)

    torch.manual_seed(0)
    network, steps = Turned(nn.Flatten(), nn.Linear(64, 3)), []
    settings = {**cheap, "progress": steps.append, "out": tmp_path}
    for sign, again in ((1, True), (1, False), (-1, True)):
        steps.clear()
        network.sign = sign
        audit_model(network, arrays, [], **settings)
        assert bool(steps) is again


def test_the_first_answer_comes_before_the_rest_of_the_audit(network, arrays, cheap, capsys, tmp_path):
    settings = {**cheap, "progress": True, "out": tmp_path / "audit"}
    result = audit_model(network, arrays, ["top_k"], **settings)
    said = capsys.readouterr()
    first, later = said.err.splitlines()
    assert said.out == ""
    assert re.match("First answer, in the untrained network by .*: No defence: leaks. .* Searches follow.$", first)
    assert later == f"After the searches. {result.verdicts[0].sentence}"
    audit_model(network, arrays, ["top_k"], **settings)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 600.0),
        ({"preset": "standard"}, None),
        ({"preset": "standard", "budget": 90}, 90.0),
        ({"budget": "1h"}, 3600.0),
        ({"budget": "none"}, None),
    ],
)
def test_an_own_network_has_ten_minutes_unless_one_says_otherwise(network, arrays, monkeypatch, settings, seconds):
    class Reached(Exception):
        pass

    def run(plan, folder, workers, device, step, budget):
        assert budget == seconds
        raise Reached

    monkeypatch.setattr("leaktight.api.audit.run", run)
    with pytest.raises(Reached):
        audit_model(network, arrays, [], progress=False, **settings)


def test_a_temporary_folder_is_private_and_goes_with_the_result(network, arrays, cheap):
    result = audit_model(network, arrays, [], **cheap)
    folder = result.folder
    assert folder.stat().st_mode & 0o077 == 0
    assert json.loads((folder / "summary.json").read_text()) == result.summary
    del result
    assert not folder.exists()


@pytest.mark.long
def test_worker_processes_find_the_same(arrays, cheap, tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3))
    one = audit_model(network, arrays, ["top_k"], **cheap)
    two = audit_model(network, arrays, ["top_k"], workers=2, **cheap)
    assert {record.status.value for record in two.records} == {"done"}
    assert [record.readings for record in one.records] == [record.readings for record in two.records]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"network": Named}, "The `network` of audit_model must be a torch.nn.Module. Got <class"),
        ({"dataset": 3}, "The `dataset` of audit_model must be a pair (inputs, labels) of arrays, a torch Dataset"),
        ({"dataset": (torch.rand(9, 1, 8, 8), torch.rand(9))}, "The labels of `dataset` must be whole numbers"),
        ({"dataset": (torch.rand(9, 1, 8, 8), torch.arange(8))}, "`dataset` must have one label for each example"),
        ({"dataset": (torch.rand(9, 3, 5, 5), torch.arange(9) % 3)}, "It does not run on examples of shape (3, 5, 5)"),
        ({"dataset": (torch.rand(9, 1, 8, 8), torch.arange(9) // 2)}, "Its output must have the shape (n, 5)"),
        ({"dataset": (torch.rand(9, 1, 8, 8) / 0, torch.arange(9) % 3)}, "must be finite numbers"),
        ({"public": (torch.rand(9, 1, 9, 9), torch.arange(9) % 3)}, "must have examples of shape (1, 8, 8)"),
        ({"public": 3}, "The `dataset` of audit_model must be a pair"),
        ({"defences": ["gausian_noise"]}, "defences[0]: There is no defence named `gausian_noise`. Did you mean"),
        ({"defences": 3}, "defences[0]: It must be a table of settings. Got 3 instead."),
        ({"defences": [{"kind": "top_k", "share": 2}]}, "defences[0]: The `share` of top_k must be"),
        ({"budget": "soon"}, "A budget must be a time such as `90s`, `10m` or `2h`. Got 'soon' instead."),
        ({"budget": 3}, "A budget must be at least 20 seconds."),
        ({"preset": "quickest"}, "There is no preset named `quickest`. Did you mean `quick`?"),
        ({"workers": 0}, "The number of workers must be at least 1. Got 0 instead."),
        ({"seed": -1}, "must be whole numbers of at least 0"),
        ({"round": 3}, "The scenario federated has no setting `round`. Did you mean `rounds`?"),
        ({"grid": {"victim": 3}}, "Grid has no setting `victim`. Did you mean `victims`?"),
        ({"head": "layers.9"}, "It has no linear layer named `layers.9`."),
    ],
)
def test_what_cannot_be_audited_is_said_in_one_sentence(network, arrays, cheap, change, sentence):
    settings = {"network": network, "dataset": arrays, "defences": [], **cheap, **change}
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        audit_model(**settings)


def test_no_folder_is_left_behind_by_an_error(network, arrays, cheap, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(LeaktightError):
        audit_model(network, arrays, [], **{**cheap, "participants": 1000})
    assert list(tmp_path.glob("leaktight-*")) == []


SCRIPT = """
from leaktight.api import audit
from leaktight.attacks import Analytic
from leaktight.core.probe import Attempt
from leaktight.metrics import standard

whole = audit.PRESETS["quick"]
probes = {"analytic": Attempt(attack=Analytic(), metrics=standard())}
audit.PRESETS["quick"] = lambda **settings: whole(**settings).model_copy(update={"probes": probes})
import torch
from torch import nn
from leaktight import audit_model

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(64, 3)
    def forward(self, inputs):
        return self.scores(inputs.flatten(1))

result = audit_model(
    Net(), (torch.rand(60, 1, 8, 8), torch.arange(60) % 3), [], "none", rounds=1,
    grid={"victims": 1, "batch_sizes": (1,)},
)
print(repr(result).partition(":")[0])
"""


@pytest.mark.long
def test_a_plain_script_needs_no_guard_and_says_what_leaks(tmp_path):
    (tmp_path / "mine.py").write_text(textwrap.dedent(SCRIPT))
    said = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, "<ModelAudit of Net\n")
    [answer, later] = said.stderr.splitlines()
    assert answer.startswith("First answer, in the untrained network by ")
    assert later.startswith("After the searches. ")
    assert [path.name for path in Path(tmp_path).iterdir()] == ["mine.py"]
