from __future__ import annotations

import itertools
import sys
import textwrap

import pytest
import torch

from leaktight.data import Factory

COUNTER = itertools.count()
PREAMBLE = """
import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset
from leaktight.core.task import Batch
from leaktight.data import Data

inputs, labels = torch.rand(6, 3, 4, 4), torch.tensor([0, 1, 2, 0, 1, 2])
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module into the current folder and return its name."""
    monkeypatch.chdir(tmp_path)
    made = []

    def write(body: str) -> str:
        name = f"users_module_{next(COUNTER)}"
        (tmp_path / f"{name}.py").write_text(PREAMBLE + textwrap.dedent(body))
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


def returning(module, expression: str, before: str = "") -> Factory:
    name = module(f"{textwrap.dedent(before)}\ndef load():\n    return {expression}\n")
    return Factory(function=f"{name}:load")


def test_four_tensors(module):
    data = returning(module, "inputs, labels, inputs[:3], labels[:3]").load()
    assert data.shape == (3, 4, 4)
    assert data.classes == 3
    assert data.train.labels.tolist() == [0, 1, 2, 0, 1, 2]
    made = sys.modules[next(name for name in sys.modules if name.startswith("users_module_"))]
    assert torch.equal(data.train.inputs, made.inputs)


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("[inputs.numpy(), labels.numpy(), inputs.numpy(), labels.numpy()]", (3, 4, 4)),
        (
            "np.zeros((4, 8, 8, 3), np.uint8), np.arange(4) % 2, np.zeros((2, 8, 8, 3), np.uint8), np.arange(2)",
            (3, 8, 8),
        ),
        (
            "torch.full((4, 8, 8), 255, dtype=torch.uint8), torch.arange(4), torch.zeros(1, 8, 8), torch.zeros(1)",
            (1, 8, 8),
        ),
        ("torch.randn(6, 5), labels, torch.randn(6, 5), labels", (5,)),
        ("inputs.bfloat16(), labels, inputs.half(), labels.int()", (3, 4, 4)),
        ("inputs.requires_grad_(), labels[:, None], inputs, labels", (3, 4, 4)),
    ],
)
def test_other_arrays(module, expression, shape):
    data = returning(module, expression).load()
    assert data.shape == shape
    assert not data.train.inputs.requires_grad
    assert data.train.labels.dtype == torch.int64


def test_a_data(module):
    data = returning(module, "Data(Batch(inputs, labels), Batch(inputs, labels), 3, ('a', 'b', 'c'))").load()
    assert data.names == ("a", "b", "c")


def test_a_data_keeps_its_private_property(module):
    batch = "Batch(inputs, labels, torch.tensor([True, False, True, False, True, False]))"
    data = returning(module, f"Data({batch}, {batch}.take(torch.arange(2)), 3, property_name='old')").load()
    assert data.property_name == "old"
    assert (data.train.properties.tolist(), data.test.properties.tolist()) == ([1, 0] * 3, [1, 0])


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ("np.ones(6)", ("must hold tensors", "ndarray")),
        ("torch.arange(6)", ("training data", "a property of 0 or 1 for each example")),
        ("torch.arange(5) % 2", ("training data", "a property of 0 or 1 for each example")),
        ("torch.ones(6)", ("training data", "with and without the property")),
        ("None", ("training data", "a property of 0 or 1 for each example")),
    ],
)
def test_wrong_properties(module, properties, words, says):
    batch = f"Batch(inputs, labels, {properties})"
    with says(*words):
        returning(module, f"Data({batch}, {batch}, 3, property_name='old')").load()


def test_two_torch_datasets(module):
    data = returning(module, "TensorDataset(inputs, labels), TensorDataset(inputs[:2], labels[:2])").load()
    assert (len(data.train), len(data.test), data.classes) == (6, 2, 3)
    assert data.train.labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_datasets_of_pictures(module):
    before = """
    class Pictures(Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, at):
            return Image.new("RGB", (6, 5), (255, 0, 0)), at % 2
    """
    data = returning(module, "Pictures(), Pictures()", before).load()
    assert data.shape == (3, 5, 6)
    assert data.train.inputs.mean((0, 2, 3)).tolist() == [1, 0, 0]


def test_neighbours_can_be_imported_when_the_function_runs(module):
    neighbour = module("def make():\n    return inputs, labels, inputs, labels\n")
    name = module(f"def load():\n    from {neighbour} import make\n    return make()\n")
    assert len(Factory(function=f"{name}:load").load().train) == 6


def test_the_function_is_called_once(module):
    source = returning(module, "calls.append(1) or (inputs, labels, inputs, labels)", "calls = []\n")
    assert source.load() is source.load()
    assert sys.modules[source.function.split(":")[0]].calls == [1]


def test_given_number_of_classes(module, says):
    source = returning(module, "inputs, labels, inputs, labels")
    assert Factory(function=source.function, classes=10).load().classes == 10
    with says("labels from 0 to 1"):
        Factory(function=source.function, classes=2).load()


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (
            "None",
            ("must return a pair (inputs, labels)", "a torch Dataset or a DataLoader", "or a Data", "Got NoneType"),
        ),
        ("inputs, 3", ("Got (Tensor, int)",)),
        ("inputs, labels, inputs", ("Got (Tensor, Tensor, Tensor)",)),
        ("inputs, labels, inputs, [0, 1]", ("Got (Tensor, Tensor, Tensor, list)",)),
        ("list(range(9))", ("Got (int, int, int, int, int, int, ...)",)),
        ("inputs, labels, inputs, labels + 1", ("test data", "labels from 0 to 2", "1 to 3")),
        ("inputs, labels - 1, inputs, labels", ("training data", "-1 to 1")),
        ("inputs, labels[:4], inputs, labels", ("training data", "one label for each example")),
        ("inputs * 2 + 1, labels, inputs, labels", ("pixels in [0, 1]",)),
        ("inputs / 0, labels, inputs, labels", ("finite numbers",)),
        ("inputs, labels / 2, inputs, labels", ("training labels", "whole numbers")),
        ("inputs, np.array(list('abcabc')), inputs, labels", ("training labels", "Got words")),
        ("inputs[..., 0, 0, 0], labels, inputs, labels", ("training inputs", "3 or 4 for images", "(6,)")),
        ("inputs[:0], labels[:0], inputs, labels", ("at least 2 classes",)),
        ("inputs[:0], labels[:0]", ("two examples of some class", "Got 0 examples")),
        ("inputs, labels[:4]", ("one label for each example", "(6, 3, 4, 4)", "(4,)")),
        ("(inputs, labels), inputs", ("Got (tuple, Tensor)",)),
        ("Data(Batch(inputs.numpy(), labels), Batch(inputs, labels), 3)", ("must hold tensors", "ndarray")),
        ("TensorDataset(inputs), TensorDataset(inputs)", ("pairs of input and label", "Got (Tensor)")),
        (
            "TensorDataset(inputs[:0], labels[:0]), TensorDataset(inputs, labels)",
            ("pairs of input and label", "Got none"),
        ),
    ],
)
def test_wrong_returns(module, expression, words, says):
    with says(*words):
        returning(module, expression).load()


def test_datasets_without_length(module, says):
    before = """
    class Endless(IterableDataset):
        def __iter__(self):
            yield inputs[0], 0
    """
    with says("must have a length", "IterableDataset"):
        returning(module, "Endless(), Endless()", before).load()


def test_inputs_of_different_shapes(module, says):
    before = """
    class Ragged(Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, at):
            return torch.zeros(3, 4, 4 + at), 0
    """
    with says("inputs of one shape", "(3, 4, 4) and (3, 4, 5)"):
        returning(module, "Ragged(), Ragged()", before).load()


def test_the_users_own_errors_are_one_sentence(module, says):
    name = module("def load():\n    raise ZeroDivisionError('mine')\n")
    with says(f"`{name}:load` failed with ZeroDivisionError: mine"):
        Factory(function=f"{name}:load").load()


def test_a_function_with_arguments(module, says):
    name = module("def load(path):\n    return path\n")
    with says("It also needs `path`"):
        Factory(function=f"{name}:load").load()


def test_imports_that_fail(module, says):
    with says("no module named `no_such_module_here`", "start from the folder"):
        Factory(function="no_such_module_here:load").load()
    missing = module("import no_such_dependency\n")
    with says(f"module `{missing}` could not be imported", "no_such_dependency"):
        Factory(function=f"{missing}:load").load()
    name = module("def load():\n    pass\nnumber = 3\n")
    with says("has no `lod`", "Did you mean `load`?"):
        Factory(function=f"{name}:lod").load()


@pytest.mark.parametrize("text", ["load", "a.b", "a:b:c", "a/b:c", ":c", "a:", "a.:c", "1a:b", "a b:c"])
def test_the_form_of_a_reference(text, says):
    with says("`function` of factory", "`package.module:function`", repr(text)):
        Factory(function=text)


PICTURES = """
class Pictures(Dataset):
    classes = ["cat", "dog", "frog"]
    def __len__(self):
        return 30
    def __getitem__(self, at):
        return inputs[at % 6], labels[at % 6].item()
"""


@pytest.mark.parametrize(
    "expression",
    [
        "inputs.repeat(5, 1, 1, 1), labels.repeat(5)",
        "[inputs.repeat(5, 1, 1, 1).numpy(), labels.repeat(5).numpy()]",
        "TensorDataset(inputs.repeat(5, 1, 1, 1), labels.repeat(5))",
        "Pictures()",
        "DataLoader(Pictures(), batch_size=4, shuffle=True)",
        "DataLoader(Endless(), batch_size=7)",
    ],
)
def test_of_one_part_a_fifth_of_each_class_is_held_out(module, expression):
    before = f"""
from torch.utils.data import DataLoader
{PICTURES}
class Endless(IterableDataset):
    def __iter__(self):
        return ((inputs[at % 6], labels[at % 6]) for at in range(30))
"""
    data = returning(module, expression, before).load()
    assert (len(data.train), len(data.test), data.classes) == (24, 6, 3)
    assert data.test.labels.bincount().tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "expression",
    [
        "(inputs, labels), (inputs[:2], labels[:2])",
        "TensorDataset(inputs, labels), (inputs[:2], labels[:2])",
        "DataLoader(TensorDataset(inputs, labels), shuffle=True), TensorDataset(inputs[:2], labels[:2])",
    ],
)
def test_two_parts_are_for_training_and_test(module, expression):
    data = returning(module, expression, "from torch.utils.data import DataLoader").load()
    assert data.train.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert data.test.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    "expression", ["Pictures()", "(Pictures(), (inputs, labels))", "DataLoader(Subset(Pictures(), range(12)))"]
)
def test_the_classes_of_a_dataset_are_their_names(module, expression):
    before = f"from torch.utils.data import DataLoader, Subset\n{PICTURES}"
    assert returning(module, expression, before).load().names == ("cat", "dog", "frog")


def test_names_of_classes_without_examples_count_too(module):
    before = PICTURES.replace('["cat", "dog", "frog"]', '["cat", "dog", "frog", "horse"]')
    data = returning(module, "Pictures()", before).load()
    assert (data.classes, data.names[-1]) == (4, "horse")


@pytest.mark.parametrize("classes", ["['cat']", "10", "None"])
def test_other_classes_of_a_dataset_are_no_names(module, classes):
    data = returning(module, "Pictures()", PICTURES.replace('["cat", "dog", "frog"]', classes)).load()
    assert (data.classes, data.names) == (3, ())
