"""Write the tables of the documentation that follow from what is installed: `python docs/registry_tables.py`.

A table stands in its page between `<!-- NAME -->` and `<!-- end -->`. A test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from leaktight.attacks import PRESETS
from leaktight.attacks.suite import FREE_LOSS, PUBLIC_HEAD, whole_suite
from leaktight.core import registry
from leaktight.core.attack import Attack
from leaktight.core.defence import Defence
from leaktight.core.threat import Knows, ThreatModel
from leaktight.core.threat_letter import LETTERS, letter_of
from leaktight.defences import LayerGuard, Sealed, Transformation, Withhold
from leaktight.defences.cut_gradient import CutDefence
from leaktight.findings.evidence import PRINCIPLES
from leaktight.testing import toy_task

DOCS = Path(__file__).parent
NEEDS_SETTINGS: dict[str, Defence] = {
    "transformation": Transformation(policy="3-1-7"),
    "sealed": Sealed(layers=("head",)),
    "withhold": Withhold(layers=("head",)),
    "layer_guard": LayerGuard(layers=("head",), count=1),
}
"""Defences that have no defaults, as examples of their kind."""
NOT_A_DEFENCE = {"none", "chain", "as_captured"}
ACTS = {
    "on_task": "the loss",
    "on_batch": "examples",
    "on_gradient": "each step's gradient",
    "on_message": "the message",
}
READS = {
    "inputs": "examples",
    "labels": "labels",
    "scores": "labels of rows",
    "property": "a property",
    "samples": "how a class looks",
    "statistics": "means and variances of a batch",
}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _ours(family: str) -> dict[str, type]:
    """Return the classes of a family that come with Leaktight."""
    return {
        kind: made
        for kind, made in registry.classes(family).items()
        if made.__module__.startswith("leaktight.") and not made.__module__.startswith("leaktight.testing.")
    }


def _defences() -> dict[str, Defence]:
    return {
        kind: NEEDS_SETTINGS[kind] if kind in NEEDS_SETTINGS else made()
        for kind, made in _ours("defence").items()
        if kind not in NOT_A_DEFENCE
    }


def _attacks() -> dict[str, Attack]:
    """Return the attacks of the suite first, then every other one, by name."""
    suite = dict(whole_suite())
    rest = {
        kind: made() for kind, made in _ours("attack").items() if kind not in {*suite, "strongest", "gradient_matching"}
    }
    return suite | rest


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "-"


def _acts(defence: Defence) -> str:
    if isinstance(defence, CutDefence):
        return "cut gradients"
    return ", ".join(words for hook, words in ACTS.items() if hook in defence.hooks()) or "what is agreed"


def _is_private(defence: Defence) -> bool:
    """Return whether a party keeps its loss to itself."""
    return defence.channel(defence.on_agree(toy_task(shape=(3, 16, 16)))).private_task


def defences() -> str:
    """Return which attacks model each defence, and on how many principles they rest."""
    rows = []
    for kind, defence in _defences().items():
        left_out = set() if _is_private(defence) else {FREE_LOSS, PUBLIC_HEAD}
        models = {n: attack for n, attack in _attacks().items() if attack.adapts_to(defence) and n not in left_out}
        principles = sorted({PRINCIPLES[attack.principle] for attack in models.values()})
        rows.append((f"`{kind}`", _acts(defence), _quote(models), ", ".join(principles) or "-"))
    return table(("defence", "acts on", "attacks that model it", "principles"), rows)


def attacks() -> str:
    """Return what each attack reads, what it rests on, and what it needs."""
    suite = {*whole_suite(), "running_statistics"}  # it runs wherever batch norm sends its statistics along
    rows = [
        (
            f"`{name}`",
            "yes" if name in suite else "no",
            ", ".join(words for claim, words in READS.items() if claim in attack.claims),
            PRINCIPLES[attack.principle],
            _quote(sorted(attack.needs)),
        )
        for name, attack in _attacks().items()
    ]
    return table(("attack", "in `strongest`", "reads", "principle", "must know"), rows)


def presets() -> str:
    """Return which presets know what a defence does."""
    rows = [
        (f"`{name}`", "yes" if any(map(attack.adapts_to, _defences().values())) else "no")
        for name, attack in PRESETS.items()
    ]
    return table(("preset", "models the defence"), rows)


def letters() -> str:
    """Return the threat models of the literature, and what stands for each here."""
    ours: dict[str, str] = {}
    threats = (
        ("knows nothing beside messages", ThreatModel(knows=frozenset())),
        ("`local_steps`, `defence`", ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.DEFENCE}))),
        ("`auxiliary` beside them", ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.AUXILIARY}))),
    )
    for words, threat in threats:
        letter = letter_of(threat)
        if letter is not None:
            ours[letter.letter] = words
    rows = [
        (one.letter, one.name, f"{'★' * one.stars}{'☆' * (3 - one.stars)}", ours.get(one.letter, "-"))
        for one in LETTERS
    ]
    return table(("letter", "name in the source", "realism, as the source sees it", "here"), rows)


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "attacks.md": {"defences": defences, "attacks": attacks, "presets": presets},
    "threats.md": {"letters": letters},
}
"""The tables of each page."""


def filled(page: str) -> str:
    """Return the text of a page with its tables as they must be."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, make in TABLES[page].items():
        before, opening, rest = text.partition(f"<!-- {name} -->\n")
        _, closing, after = rest.partition("<!-- end -->\n")
        if not (opening and closing):
            raise ValueError(f"The page {page} must have a place for the table `{name}`. It has none.")
        text = f"{before}{opening}\n{make()}\n\n{closing}{after}"
    return text


if __name__ == "__main__":
    for page in TABLES:
        (DOCS / page).write_text(filled(page), encoding="utf-8")
