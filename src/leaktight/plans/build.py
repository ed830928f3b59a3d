"""Building values from tables: every fault is found at once, and each says where it is."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args, get_origin

from leaktight import data, models
from leaktight.core import registry
from leaktight.core.defence import Chain, Defence
from leaktight.core.errors import InvalidValue, excerpt
from leaktight.core.value import Registered, Value
from leaktight.data.source import Source
from leaktight.models.network import Network

Table = dict[str, Any]
MOST_SHOWN = 50
"""How many faults of a file are shown."""
MOST_VARIATIONS = 10_000
"""How many defences the lists in one table may make: two lists of a hundred strengths each."""

_WORDS: dict[str, Callable[[str], Registered]] = {Source.family: data.from_text, Network.family: models.from_text}


@dataclasses.dataclass
class Faults:
    """The faults found so far, each with its place."""

    _noted: dict[str, None] = dataclasses.field(default_factory=dict)

    @property
    def sentences(self) -> list[str]:
        """The sentences, each with its place."""
        return list(self._noted)

    def add(self, place: str, text: object) -> None:
        """Note one fault for each line of a text; the same fault twice is one."""
        for line in str(text).splitlines():
            self._noted[f"{place}: {line}" if place else line] = None

    def check(self, source: str) -> None:
        """Raise one error that states all faults, if there are any."""
        if not self.sentences:
            return
        count = "1 fault" if len(self.sentences) == 1 else f"{len(self.sentences)} faults"
        lines = [f"  {sentence}" for sentence in self.sentences[:MOST_SHOWN]]
        more = [f"  and {len(self.sentences) - len(lines)} more."] if len(self.sentences) > len(lines) else []
        raise InvalidValue("\n".join([f"{source} has {count}:", *lines, *more]))


def build_value(root: type[Any], given: object, place: str, faults: Faults) -> Any:
    """Return the value that a table describes, or note every fault of it, and of the tables inside it, and return None.

    Args:
        root: what the table must describe: a value's class, or the root of a family whose `kind` the table names.
        given: the table; a plain word stands for a table with only that `kind`, or for data and models what it means on
            the command line.
        place: where in the file it is.
        faults: where faults are noted.
    """
    try:
        table = _table(root, given)
        final = _class_of(root, table)
    except InvalidValue as error:
        faults.add(place, error)
        return None
    inner, broken = _inside(final, table, place, faults)
    try:
        value = final.model_validate({name: part for name, part in inner.items() if name not in broken})
    except InvalidValue as error:
        # A broken part is not missing: its own faults are noted already.
        own = [
            line for line in str(error).splitlines() if not any(line.startswith(f"The `{name}` of ") for name in broken)
        ]
        faults.add(place, "\n".join(own))
        return None
    return None if broken else value


def sweep(table: object) -> list[object]:
    """Return a defence's table once for each value in a list on its strength field.

    The field may also be inside a chain, or belong to what a guard applies.

    Example:
        >>> sweep({"kind": "gaussian_noise", "std": [0.1, 0.2]})
        [{'kind': 'gaussian_noise', 'std': 0.1}, {'kind': 'gaussian_noise', 'std': 0.2}]
        >>> len(sweep({"kind": "layer_guard", "count": [1, 2], "guard": {"kind": "gaussian_noise", "std": [0.1, 0.2]}}))
        4
    """
    if not isinstance(table, dict):
        return [table]
    links = table.get("links")
    if table.get("kind") == Chain().kind and isinstance(links, list):
        return [{**table, "links": list(choice)} for choice in _product(map(sweep, links))]
    found = registry.classes(Defence.family).get(str(table.get("kind")))
    strength = found.strength if found is not None and issubclass(found, Defence) else None
    values = table.get(strength.field) if strength else None
    own = [table]
    if strength is not None and isinstance(values, list) and values:
        own = [{**table, strength.field: value} for value in values]
    tables = {name: sweep(value) for name, value in table.items() if isinstance(value, dict)}
    return [{**one, **dict(zip(tables, choice, strict=True))} for one, *choice in _product([own, *tables.values()])]


def _product(parts: Iterable[list[Any]]) -> list[tuple[Any, ...]]:
    parts = list(parts)
    count = math.prod(map(len, parts))
    if count > MOST_VARIATIONS:
        raise InvalidValue(
            f"The lists of a defence must make at most {MOST_VARIATIONS} of them. Got {count}; shorten the lists."
        )
    return list(itertools.product(*parts))


def _table(root: type[Value], given: object) -> Table:
    if isinstance(given, dict):
        return given
    if isinstance(given, str) and issubclass(root, Registered):
        return _WORDS[root.family](given).to_dict() if root.family in _WORDS else {"kind": given}
    raise InvalidValue(f"It must be a table of settings. Got {excerpt(given)} instead.")


def _class_of(root: type[Value], table: Table) -> type[Value]:
    if issubclass(root, Registered) and not root.model_fields["kind"].default:
        return registry.find(root.family, str(table.get("kind", "")), root)
    return root


def _inside(final: type[Value], table: Table, place: str, faults: Faults) -> tuple[Table, set[str]]:
    """Build the tables inside a table first, each under its own place; return what was built and what could not be."""
    inner, broken = dict(table), set()
    for name, field in final.model_fields.items():
        root, many = _value_class(field.annotation)
        # A value that is not told apart by its kind may be written as a text: it reads that itself.
        if root is None or name not in table or (isinstance(table[name], str) and not issubclass(root, Registered)):
            continue
        if many and isinstance(table[name], list):
            built = [build_value(root, one, f"{place}.{name}[{at}]", faults) for at, one in enumerate(table[name])]
            inner[name] = built
            if None in built:
                broken.add(name)
        elif not many:
            inner[name] = build_value(root, table[name], f"{place}.{name}", faults)
            if inner[name] is None:
                broken.add(name)
    return inner, broken


def _value_class(annotation: Any) -> tuple[type[Value] | None, bool]:
    """Return the class of values that a field holds, if it holds values, and whether it holds several."""
    for candidate in _candidates(annotation):
        many = get_origin(candidate) is tuple
        [inner, *_] = get_args(candidate) if many else [candidate]
        while get_origin(inner) is not None and get_args(inner):
            inner = get_args(inner)[0]
        if isinstance(inner, type) and issubclass(inner, Value):
            return inner, many
    return None, False


def _candidates(annotation: Any) -> Iterator[Any]:
    """Return the alternatives of a union, or the annotation itself."""
    alternatives = [one for one in get_args(annotation) if one is not type(None)]
    yield from alternatives if type(None) in get_args(annotation) else [annotation]
