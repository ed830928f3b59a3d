"""Fingerprints: everything that a result was made from and that its settings only name.

These are data, model, code and versions.
"""

from __future__ import annotations

import dataclasses
import inspect
import platform
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import metadata
from typing import Any

import torch

import leaktight
from leaktight.core.defence import Chain, Defence
from leaktight.core.digest import digest
from leaktight.core.display import capital, join_words
from leaktight.core.factory import load_object, references
from leaktight.core.scenario import Scenario
from leaktight.core.value import Value
from leaktight.data.source import Source
from leaktight.running.content import MODEL, RESPONSE, ContentDigest, digest_content, digest_data
from leaktight.running.dependencies import NUMERIC_PACKAGES, VERSION, digest_loaded, trace
from leaktight.running.live_code import reach

DATA, FORMAT = "the data", "torch's number format"
_EFFECTS = (MODEL, RESPONSE)
_UNKNOWN = "something that was not written down"
_SHOWN = 3


@dataclasses.dataclass(frozen=True)
class Fingerprint:
    """What a result was made from.

    Args:
        parts: a digest or a version for each thing that can change, by a name that a person knows.

    Example:
        >>> before = Fingerprint({"models.py": "5a", "the version of torch": "2.12.0"})
        >>> now = Fingerprint({"models.py": "7c", "the version of torch": "2.13.0"})
        >>> now.changes(before)
        ['models.py', 'the version of torch (2.12.0, now 2.13.0)']
    """

    parts: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """A short text that two fingerprints share if all their parts are the same."""
        return digest(*(text for pair in sorted(self.parts.items()) for text in pair))[:16]

    def changes(self, before: Fingerprint) -> list[str]:
        """Name what is different from another fingerprint.

        What a model does is named only if nothing else explains the difference.
        """
        if not before.parts:
            return [_UNKNOWN]
        names = [name for name in self.parts if name in before.parts and self.parts[name] != before.parts[name]]
        names = names or sorted(self.parts.keys() ^ before.parts.keys())
        causes = [name for name in names if name not in _EFFECTS] or names
        return [self._describe(name, before) for name in causes]

    def _describe(self, name: str, before: Fingerprint) -> str:
        old, new = before.parts.get(name), self.parts.get(name)
        return f"{name} ({old}, now {new})" if name.startswith(VERSION) and old and new else name


def list_first(names: Iterable[str]) -> str:
    """Return names as the beginning of a sentence, the first few of them.

    Example:
        >>> list_first(["a.py"]), list_first(["a.py", "b.py"]), list_first("abcdef")
        ('a.py', 'a.py and b.py', 'a, b, c and 3 more')
    """
    each = list(dict.fromkeys(names))
    return join_words([*each[:_SHOWN], f"{len(each) - _SHOWN} more"] if len(each) > _SHOWN + 1 else each)


def explain(names: Iterable[str], share: str, number: int) -> str:
    """Say why something is computed again.

    Args:
        names: what changed.
        share: what is computed again, in words.
        number: how many that are.

    Example:
        >>> explain(["models.py"], "1 of 12 cells", 1)
        'models.py changed, so 1 of 12 cells is computed again.'
        >>> explain(["the data", "models.py"], "3 scores", 3)
        'The data and models.py changed, so 3 scores are computed again.'
    """
    each = list(names)
    # The name of a file or a class stays as it is.
    start = list_first([capital(each[0]) if " " in each[0] else each[0], *each[1:]])
    return f"{start} changed, so {share} {'is' if number == 1 else 'are'} computed again."


class Fingerprints:
    """Fingerprints for one run of an audit or a search: data, models and files are looked at once."""

    def __init__(self) -> None:
        self._contents: dict[tuple[str, int], ContentDigest] = {}
        self._data: dict[tuple[type, str], str] = {}
        self._files: dict[tuple[frozenset[str], tuple[str, ...]], dict[str, str]] = {}
        self._reached: dict[frozenset[Any], dict[str, str]] = {}
        # A module may be changed between two runs, not within one.
        self._look = cache(digest_loaded)
        self._whole: dict[tuple[Any, ...], Fingerprint] = {}
        # Within one minor version of Python, a syntax tree is always written in the same way.
        python = {"python": ".".join(platform.python_version_tuple()[:2])}
        self._versions = {f"{VERSION}{name}": text for name, text in {**_numeric_versions(), **python}.items()}
        self._versions[FORMAT] = f"{torch.get_default_dtype()} {torch.get_float32_matmul_precision()}"

    def of(
        self, scenario: Scenario, seed: int, *values: Value, through: tuple[str, ...] = (), alone: tuple[str, ...] = ()
    ) -> Fingerprint:
        """Return what a scenario and these values are made from.

        Args:
            scenario: whose data and model are looked at.
            seed: what the model's initial parameters derive from.
            values: defence and probe, or whatever else has a part in the result.
            through: modules of Leaktight that compute it, beside those of the values; what they import counts too.
            alone: the same, but what they import does not count.
        """
        place = (type(scenario), scenario.key, seed, *((type(value), value.key) for value in values), through, alone)
        if place not in self._whole:
            self._whole[place] = Fingerprint(self._parts(scenario, seed, values, through, alone))
        return self._whole[place]

    def _parts(
        self, scenario: Scenario, seed: int, values: tuple[Value, ...], through: tuple[str, ...], alone: tuple[str, ...]
    ) -> dict[str, str]:
        if (scenario.key, seed) not in self._contents:
            self._contents[scenario.key, seed] = digest_content(scenario.content(seed))
        content = self._contents[scenario.key, seed]
        data = [self._of_source(source) for source in _sources((scenario, *values))]
        # After what a person's functions load is loaded.
        every = list(_walk((scenario, *values)))
        code = _code(every)
        modules = (*(module for module, _ in code), *(part.__module__ for part in content.classes))
        files = self._of_files(frozenset((*through, *modules)), alone)
        reached = self._of_reach(frozenset((*content.classes, *(definition for _, definition in code))))
        return {
            **files,
            **{name: digest(files[name], text) if name in files else text for name, text in reached.items()},
            **content.parts,
            **_stamps(every),
            **({DATA: digest(*data)} if data else {}),
            **self._versions,
        }

    def _of_files(self, roots: frozenset[str], alone: tuple[str, ...]) -> dict[str, str]:
        if (roots, alone) not in self._files:
            self._files[roots, alone] = trace(roots, alone, self._look)
        return self._files[roots, alone]

    def _of_reach(self, roots: frozenset[Any]) -> dict[str, str]:
        if roots not in self._reached:
            self._reached[roots] = reach(roots)
        return self._reached[roots]

    def _of_source(self, source: Source) -> str:
        place = type(source), source.key
        if place not in self._data:
            self._data[place] = digest_data(source.load())
        return self._data[place]


def versions() -> dict[str, str]:
    """Return the versions that a result depends on, and what it was made on."""
    return {**_numeric_versions(), "python": platform.python_version(), "platform": platform.platform()}


def _numeric_versions() -> dict[str, str]:
    """Return the version of everything that computes."""
    return {
        "leaktight": leaktight.__version__,
        **{name: metadata.version(name) for name in NUMERIC_PACKAGES.values()},
        # With what it was built for.
        "torch": str(torch.__version__),
    }


def _walk(values: Iterable[Any]) -> Iterator[Value]:
    """Return values and all that are in them."""
    for value in values:
        if isinstance(value, Value):
            yield value
            yield from _walk(part for _, part in value)
        elif isinstance(value, dict):
            yield from _walk(value.values())
        elif isinstance(value, tuple | list | frozenset):
            yield from _walk(value)


def _sources(values: Iterable[Any]) -> Iterator[Source]:
    """Return where data come from; what a source itself reads from shows in what it returns."""
    inner = {id(part) for source in _walk(values) if isinstance(source, Source) for part in list(_walk((source,)))[1:]}
    return (value for value in _walk(values) if isinstance(value, Source) and id(value) not in inner)


def _code(values: Iterable[Value]) -> list[tuple[str, Any]]:
    """Return the modules, and what is used of them, that classes and a person's own functions come from."""
    found: list[tuple[str, Any]] = []
    for value in values:
        found.append((type(value).__module__, type(value)))
        for reference in references(value):
            own = load_object(reference)
            definition = own if inspect.isroutine(own) or inspect.isclass(own) else type(own)
            found += [(reference.partition(":")[0], definition), (str(definition.__module__), definition)]
    return found


def _stamps(values: Iterable[Value]) -> dict[str, str]:
    """Return what defences read from elsewhere."""
    found: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, Defence) and not isinstance(value, Chain) and (stamp := value.stamp()) is not None:
            found.setdefault(f"what {value.kind} reads", []).append(repr(stamp))
    return {name: digest(*stamps) for name, stamps in found.items()}
