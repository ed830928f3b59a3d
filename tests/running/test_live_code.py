"""Code as it is in memory: a result that was made with it is never taken for one of other code."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leaktight.running.fingerprint import Fingerprint, Fingerprints
from leaktight.running.live_code import reach

NOISE = '''
import functools
import os
from typing import ClassVar

import own_helper
import torch
from leaktight.core.defence import Defence
from own_helper import bend

SCALE = 1.0
SETTINGS = {"slope": 1.0}
FROM_OUTSIDE = float(os.environ.get("OWN_SCALE", "1"))
HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = 0
SEEN = {}


def scale(t, by=2.0):
    return t * by * SCALE


def make(power):
    def raised(t):
        return t**power

    return raised


raised = make(3)
shifted = functools.partial(torch.add, other=2.0)
KERNEL = torch.tensor([1.0, 2.0])


def remember(t):
    global CALLS
    CALLS += 1
    SEEN[CALLS] = 1.0
    Noise.count += 1
    return t


def set_scale(to):
    global SCALE
    SCALE = to


class Base(Defence):
    floor: ClassVar[float] = 0.5

    def low(self, t):
        """Return it."""
        # why
        return t.clamp(self.floor)


class Noise(Base):
    count: ClassVar[int] = 0

    def on_message(self, message, local):
        from own_late import late

        kept = remember(scale(self.low(message))) * SETTINGS["slope"] * FROM_OUTSIDE
        return late(bend(own_helper.push(raised(shifted(kept) * KERNEL)))), HERE
'''
HELPER = "STEP = 1\n\n\ndef bend(t):\n    return t + STEP\n\n\ndef push(t):\n    return -t\n"
LATE = "import os\nMORE = 2.0\nSTART = float(os.getpid())\n\n\ndef late(t):\n    return t * MORE + START\n"
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Return how a person writes files; what was loaded stays loaded."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))

    def files(**texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / f"own_{name}.py").write_text(text)
        importlib.invalidate_caches()

    files(noise=NOISE, helper=HELPER, late=LATE)
    yield files
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def look(toys: ModuleType) -> Fingerprint:
    made = importlib.import_module("own_noise").Noise
    return Fingerprints().of(toys.ToyScenario(), 0, made.model_construct(kind="own_noise"))


EDITS = {
    "a function": ("noise", "t * by", "t / by"),
    "a default": ("noise", "by=2.0", "by=200.0"),
    "a constant": ("noise", "SCALE = 1.0", "SCALE = 100.0"),
    "a closure": ("noise", "make(3)", "make(4)"),
    "an argument": ("noise", "other=2.0", "other=200.0"),
    "a tensor": ("noise", "[1.0, 2.0]", "[1.0, 200.0]"),
    "a setting": ("noise", '"slope": 1.0', '"slope": 100.0'),
    "a class attribute": ("noise", "floor: ClassVar[float] = 0.5", "floor: ClassVar[float] = 50.0"),
    "a method": ("noise", "t.clamp(self.floor)", "t.clamp(-self.floor)"),
    "another method": ("noise", "    count: ", "    def low(self, t):\n        return t\n\n    count: "),
    "a helper": ("helper", "t + STEP", "t - STEP"),
    "a helper's constant": ("helper", "STEP = 1", "STEP = 100"),
    "a helper behind its module": ("helper", "-t", "-2 * t"),
}


@pytest.mark.parametrize("what", EDITS)
def test_what_was_edited_after_it_was_loaded_counts_as_it_was_loaded(write: Write, toys: ModuleType, what: str) -> None:
    name, old, new = EDITS[what]
    text = {"noise": NOISE, "helper": HELPER}[name]
    importlib.import_module("own_noise")
    write(**{name: text.replace(old, new, 1)})
    stale = look(toys)
    forget()
    fresh = look(toys)
    assert fresh.changes(stale) == [f"own_{name}.py"]
    assert look(toys) == fresh


@pytest.mark.parametrize("what", EDITS)
def test_what_was_looked_at_edited_and_loaded_again_is_as_in_a_new_process(
    write: Write, toys: ModuleType, what: str
) -> None:
    name, old, new = EDITS[what]
    before = look(toys)
    write(**{name: {"noise": NOISE, "helper": HELPER}[name].replace(old, new, 1)})
    look(toys)
    for loaded in ("own_helper", "own_noise"):
        importlib.reload(sys.modules[loaded])
    again = look(toys)
    forget()
    assert again == look(toys) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# why", "# because"),
        ('"""Return it."""\n', '"""Return the same."""\n\n'),
        ("\n\n\ndef make", "\n\n\n# Powers.\n\n\ndef make"),
    ],
)
def test_a_sentence_that_was_edited_after_it_was_loaded_does_not_show(
    write: Write, toys: ModuleType, old: str, new: str
) -> None:
    before = look(toys)
    forget()
    importlib.import_module("own_noise")
    write(noise=NOISE.replace(old, new, 1))
    assert NOISE.replace(old, new, 1) != NOISE
    assert look(toys) == before


def test_state_that_was_set_by_hand_shows_and_can_be_set_back(write: Write, toys: ModuleType) -> None:
    before = look(toys)
    noise, helper = sys.modules["own_noise"], sys.modules["own_helper"]
    settings: Any = vars(noise)["SETTINGS"]
    for owner, name, value in (
        (noise, "SCALE", 50),
        (noise, "scale", lambda t, by=2.0: t),
        (noise, "raised", vars(noise)["make"](5)),
        (noise, "SETTINGS", {**settings, "slope": 3.0}),
        (helper, "STEP", 9),
        (vars(noise)["Base"], "floor", 0.75),
        (vars(noise)["Base"], "low", lambda self, t: t),
    ):
        kept = vars(owner)[name]
        setattr(owner, name, value)
        assert look(toys) != before, name
        setattr(owner, name, kept)
        assert look(toys) == before, name
    vars(noise)["set_scale"](7.0)
    assert look(toys).changes(before) == ["own_noise.py"]


def test_what_a_module_reads_from_the_environment_shows(
    write: Write, toys: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = look(toys)
    forget()
    assert look(toys) == before
    forget()
    monkeypatch.setenv("OWN_SCALE", "100")
    assert look(toys).changes(before) == ["own_noise.py"]


def test_what_code_counts_or_remembers_while_it_runs_does_not_show(write: Write, toys: ModuleType) -> None:
    before = look(toys)
    for number in range(3):
        vars(sys.modules["own_noise"])["remember"](number)
    assert vars(sys.modules["own_noise"])["CALLS"] == 3
    assert look(toys) == before


def test_a_module_that_is_loaded_late_does_not_show_unless_it_is_changed(write: Write, toys: ModuleType) -> None:
    before = look(toys)
    assert "own_late" not in sys.modules
    late = importlib.import_module("own_late")
    assert look(toys) == before
    vars(late)["MORE"] = 3.0
    assert look(toys).changes(before) == ["own_late.py"]


LOOK = """
import sys
sys.path[:] = {path!r}
sys.dont_write_bytecode = True
import own_noise
{more}
import leaktight_toys
from leaktight.running.fingerprint import Fingerprints
print(Fingerprints().of(leaktight_toys.ToyScenario(), 0, own_noise.Noise.model_construct(kind="own_noise")).digest)
"""


@pytest.mark.parametrize("more", ["", "import own_late; own_noise.remember(1)"])
def test_processes_agree(write: Write, toys: ModuleType, tmp_path: Path, more: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name, text in (
        ("noise", NOISE.replace("# why", "# moved\n\n        # down")),
        ("helper", HELPER),
        ("late", LATE),
    ):
        (elsewhere / f"own_{name}.py").write_text(text)
    path = [str(elsewhere), *(place for place in sys.path if place != str(tmp_path))]
    words = [sys.executable, "-c", LOOK.format(path=path, more=more)]
    environment = {"PYTHONHASHSEED": "7"}
    said = subprocess.run(words, check=True, capture_output=True, text=True, cwd=elsewhere, env=environment)
    assert said.stdout.strip() == look(toys).digest


TYPED = """
def helper(t, by=2.0):
    return t * by * SCALE

def make(power):
    def raised(t):
        return t**power
    return raised

SCALE, SHARES, CALLS, SEEN = 1.0, {"a", "b"}, 0, []
raised = make(3)

def remember(t):
    '''Count.'''
    global CALLS
    CALLS += 1
    SEEN.append(t)
    return t

class Floor:
    least = 0.5

class Typed(Base):
    slope: ClassVar = 1.0

    def on_message(self, message, local):
        return remember(raised(helper(message))) * self.slope * Floor.least, SHARES
"""


def typed(text: str) -> Any:
    scope: dict[str, Any] = {"__name__": "typed"}
    head = "from typing import ClassVar\nfrom leaktight.core.defence import Defence as Base\n"
    exec(compile(head + text, "<typed>", "exec", dont_inherit=True), scope)  # noqa: S102
    return scope


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("t * by", "t / by", ["helper"]),
        ("by=2.0", "by=200.0", ["helper"]),
        ("= 1.0, {", "= 100.0, {", ["SCALE"]),
        ('{"a", "b"}', '{"a", "c"}', ["SHARES"]),
        ("make(3)", "make(4)", ["make"]),
        ("least = 0.5", "least = 50.0", ["Floor"]),
        ("slope: ClassVar = 1.0", "slope: ClassVar = 100.0", ["Typed"]),
        ("raised(helper(message))", "helper(raised(message))", ["Typed"]),
    ],
)
def test_everything_that_typed_code_reaches_shows(
    toys: ModuleType, monkeypatch: pytest.MonkeyPatch, old: str, new: str, named: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typed", ModuleType("typed"))
    assert old in TYPED
    one, two = (
        Fingerprints().of(toys.ToyScenario(), 0, typed(text)["Typed"].model_construct(kind="typed"))
        for text in (TYPED, TYPED.replace(old, new, 1))
    )
    assert two.changes(one) == named


@pytest.mark.parametrize(
    ("old", "new"), [("Count.", "Count them."), ("'''Count.'''", "pass"), ("class Floor", "# Low.\nclass Floor")]
)
def test_sentences_and_memories_of_typed_code_do_not_show(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    monkeypatch.setitem(sys.modules, "typed", ModuleType("typed"))
    one, two = typed(TYPED), typed(TYPED.replace(old, new, 1))
    two["remember"](1)
    assert reach([one["Typed"]]) == reach([two["Typed"]])
    assert reach([one["Typed"]]).keys() == {"Floor", "SCALE", "SHARES", "Typed", "helper", "make", "remember"}


PIPED = """
import sys
sys.path[:] = PATH
import leaktight_toys
from leaktight.core.defence import Defence
from leaktight.running.fingerprint import Fingerprints

class Piped(Defence):
    def on_message(self, message, local):
        return message.map(lambda t: t * 1)

print(dict(Fingerprints().of(leaktight_toys.ToyScenario(), 0, Piped.model_construct(kind="piped")).parts)["Piped"])
"""


@pytest.mark.long
def test_code_that_comes_through_a_pipe_shows(toys: ModuleType, tmp_path: Path) -> None:
    text = PIPED.replace("PATH", repr(sys.path))
    said = [
        subprocess.run(
            [sys.executable, "-"], input=each, check=True, capture_output=True, text=True, cwd=tmp_path
        ).stdout
        for each in (text, text.replace("t * 1", "t * 100"), text.replace("class Piped", "# Again.\n\nclass Piped"))
    ]
    assert said[0] == said[2] != said[1]


def test_a_function_of_ones_own_in_a_class_of_leaktight_shows(
    toys: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leaktight.defences import GaussianNoise

    monkeypatch.setitem(sys.modules, "typed", ModuleType("typed"))
    scope = typed("def louder(self, message, local):\n    return message.map(lambda t: t * 100)\n")
    for is_checkout in (True, False):
        monkeypatch.setattr("leaktight.running.dependencies.is_checkout", lambda found=is_checkout: found)
        before = Fingerprints().of(toys.ToyScenario(), 0, GaussianNoise())
        with monkeypatch.context() as patch:
            patch.setattr(GaussianNoise, "on_message", scope["louder"])
            assert Fingerprints().of(toys.ToyScenario(), 0, GaussianNoise()) != before
        assert Fingerprints().of(toys.ToyScenario(), 0, GaussianNoise()) == before


def test_a_list_that_holds_itself_and_an_empty_closure_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typed", ModuleType("typed"))
    scope = typed(
        "ALL = []\nALL.append(ALL)\ndef outer():\n    def inner():\n        return ALL, gone\n    gone = 1\n    del "
        "gone\n    return inner\n"
    )
    assert reach([scope["outer"]()]).keys() == {"outer"}
