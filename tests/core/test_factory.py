"""A person's own code: found from the current folder, called with what it names, and told in one sentence what is wrong."""

import re
import sys

import pytest

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.factory import call_object, is_reference, load_object, reason_of

FILES = {
    "good.py": """
from leaktight.core.errors import Refusal
class Outer:
    class Inner:
        @staticmethod
        def make(): return "made"
def both(shape, classes): return shape, classes
def one(classes=3): return classes
def everything(**given): return given
def none(): return "nothing asked"
def positional(shape, /): return shape
def refuses(): raise Refusal("Not with me.")
def lazy():
    import neighbour
    return neighbour.VALUE
def leaves(): raise SystemExit(2)
def deep(): return both(1)
""",
    "neighbour.py": "VALUE = 42",
    "divides.py": "x = 1\ny = x / 0",
    "unparsable.py": "def f(:\n    pass",
    "lacks.py": "import no_such_dependency",
    "exits.py": "import sys\nsys.exit(3)",
    "interrupted.py": "raise KeyboardInterrupt",
    "package/__init__.py": "",
    "package/inner.py": "def f(): return __name__",
    "torch_like/__init__.py": "raise RuntimeError('first line\\nsecond line')",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of the person's own modules, as the current one."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("text", ["a:b", "a.b.c:d", "a:B.c", "_x1:é"])
def test_the_form_is_recognised(text):
    assert is_reference(text)


@pytest.mark.parametrize(
    "text", ["", "a", ":", "a:", ":b", "a.b", "a b:c", "a:b:c", "a..b:c", "a:b()", "./a.py:b", "C:\\a:b", "1a:b"]
)
def test_any_other_form_is_one_sentence(text):
    assert not is_reference(text)
    expected = f"A reference to your own code must have the form `package.module:function`. Got {text!r} instead."
    with pytest.raises(InvalidValue, match=re.escape(expected)):
        load_object(text)


def test_modules_of_the_current_folder_are_found_packages_too():
    assert load_object("good:none")() == "nothing asked"
    assert load_object("package.inner:f")() == "package.inner"
    assert load_object("good:Outer.Inner.make")() == "made"


def test_a_module_may_import_its_neighbours_when_it_is_called():
    assert call_object("good:lazy") == 42


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        (
            "no_such:f",
            "There is no module named `no_such` in the current folder or among the installed packages. Check the "
            "spelling of `no_such`",
        ),
        ("package.no_such:f", "There is no module named `package.no_such` in the current folder"),
        (
            "no_such.inner:f",
            "There is no module named `no_such` in the current folder or among the installed packages. Check the "
            "spelling of `no_such.inner`",
        ),
        (
            "lacks:f",
            "The module `lacks` could not be imported: ModuleNotFoundError: No module named 'no_such_dependency' "
            "(lacks.py, line 1).",
        ),
        (
            "divides:f",
            "The module `divides` could not be imported: ZeroDivisionError: division by zero (divides.py, line 2).",
        ),
        (
            "unparsable:f",
            "The module `unparsable` could not be imported: SyntaxError: invalid syntax (unparsable.py, line 1).",
        ),
        ("exits:f", "The module `exits` could not be imported: SystemExit: 3 (exits.py, line 2)."),
        (
            "torch_like:f",
            "The module `torch_like` could not be imported: RuntimeError: first line (__init__.py, line 1).",
        ),
        ("good:bth", "good.py) has no `bth`. Did you mean `both`?"),
        ("good:Outer.Iner", "`Outer` of the module `good` has no `Iner`. Did you mean `Inner`?"),
    ],
)
def test_what_cannot_be_loaded_is_one_sentence(reference, sentence):
    with pytest.raises(InvalidValue) as caught:
        load_object(reference)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        load_object("interrupted:f")


def test_names_that_a_module_only_imported_are_not_suggested():
    with pytest.raises(InvalidValue) as caught:
        load_object("good:Refusl")
    assert "Refusal" not in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("good:both", ((1, 2), 5)),
        ("good:one", 5),
        ("good:none", "nothing asked"),
        ("good:everything", {"shape": (1, 2), "classes": 5}),
    ],
)
def test_a_function_gets_what_it_names(reference, expected):
    assert call_object(reference, shape=(1, 2), classes=5) == expected


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        (
            "good:both",
            "`good:both` must need nothing but what it is offered: `shape`. It also needs `classes`; give those a "
            "default.",
        ),
        ("good:positional", "It also needs `shape`; give those a default."),
        ("good:leaves", "`good:leaves` failed with SystemExit: 2 (good.py, line 16)."),
        (
            "good:deep",
            "`good:deep` failed with TypeError: both() missing 1 required positional argument: 'classes' (good.py, "
            "line 17).",
        ),
        ("neighbour:VALUE", "`neighbour:VALUE` must be a function or a class. Got an int instead."),
    ],
)
def test_what_cannot_be_called_is_one_sentence(reference, sentence):
    with pytest.raises(InvalidValue) as caught:
        call_object(reference, shape=(1, 2))
    assert sentence in str(caught.value)


def test_errors_of_ours_pass_as_they_are():
    with pytest.raises(Refusal, match=r"^Not with me\.$"):
        call_object("good:refuses")


def test_a_reason_without_text_is_the_name():
    assert reason_of(KeyError()) == "KeyError"
    assert reason_of(RuntimeError("it broke.\n  at length")) == "RuntimeError: it broke"
