"""Display: how defences, cells and numbers are named to people who do not read code."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from leaktight.core.defence import Chain, Defence, is_undefended
from leaktight.core.display import join_words
from leaktight.core.metric import quantity_of
from leaktight.core.probe import attack_of
from leaktight.core.record import Cell
from leaktight.core.value import Registered
from leaktight.data.files import PASSED_ON

STAGES = {
    "initial": "before training",
    "early": "early in training",
    "end": "after training",
    "training": "throughout training",
}


def strength_of(defence: Defence) -> float | None:
    """Return the value of the field that a trade-off curve sweeps, or None if there is none."""
    return None if defence.strength is None else float(getattr(defence, defence.strength.field))


def rank(defence: Defence) -> float:
    """Return a number that grows with the strength of one kind of defence."""
    value = strength_of(defence)
    if value is None or defence.strength is None:
        return 0.0
    return value if defence.strength.stronger == "up" else -value


Place = tuple[str | int, ...]
"""Where in a defence's settings a number is: `("std",)`, or `("links", 1, "std")` in a chain."""


def name_of(defence: Defence, without: Place = ()) -> str:
    """Name a defence by its kind, its strength and whatever else is not at its default.

    Args:
        defence: the defence at its strength.
        without: where the one setting is that the name leaves out.

    Example:
        >>> from leaktight.core.defence import Undefended
        >>> name_of(Undefended())
        'no defence'
    """
    if is_undefended(defence):
        return "no defence"
    if isinstance(defence, Chain):
        inner = {without[1]: without[2:]} if without[:1] == ("links",) else {}
        return " + ".join(name_of(link, inner.get(number, ())) for number, link in enumerate(defence.links))
    strength = defence.strength.field if defence.strength else ""
    shown = [
        f"{field.replace('_', ' ')} {_show(defence, field, without[1:] if without[:1] == (field,) else ())}"
        for field, info in type(defence).model_fields.items()
        if field != "kind" and (field,) != without and (field == strength or getattr(defence, field) != info.default)
    ]
    return f"{defence.title} ({', '.join(shown)})" if shown else defence.title


def _show(defence: Defence, field: str, without: Place) -> str:
    value = getattr(defence, field)
    if isinstance(value, Defence):
        return name_of(value, without)
    if isinstance(value, Registered):
        return value.title
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    # A place on the disk may tell of people and projects, and names are in reports that are passed on.
    if isinstance(value, str) and defence.model_dump(include={field}, context=PASSED_ON)[field] != value:
        return "from a file"
    return f"{value:g}" if isinstance(value, float) else str(value)


def family_of(defence: Defence) -> str:
    """Name a defence without its strength: what one line of a trade-off plot shows."""
    return name_of(defence) if defence.strength is None else name_of(defence, (defence.strength.field,))


def label_of(cell: Cell) -> str:
    """Return how a cell's probe is named: its label, or else its own kind and settings.

    A preset of which settings were changed is said to be changed; in labels it has a star.
    """
    attack = attack_of(cell.probe)
    name = cell.label or str(attack or cell.probe)
    return f"{name.removesuffix('*')}, changed" if name.endswith("*") else name


def setting_of(cell: Cell) -> str:
    """Say when and in batches of how many examples a cell's messages were made."""
    return setting(cell.batch_size, cell.stage)


def setting(batch_size: int, stage: str, behind: int | None = None) -> str:
    """Say when and from how many examples a message was made.

    Args:
        batch_size: examples behind one local step of one participant.
        stage: when in training.
        behind: examples behind one message, if known: more than a batch after several local steps or in a secure sum.

    Example:
        >>> setting(1, "initial"), setting(8, "end", behind=8)
        ('batches of 1, before training', 'batches of 8, after training')
        >>> setting(8, "end", behind=32)
        'batches of 8, 32 examples behind each message, after training'
    """
    more = f", {behind} examples behind each message" if behind is not None and behind > batch_size else ""
    return f"batches of {batch_size}{more}, {STAGES.get(stage, stage)}"


def gist(part: Registered | type[Registered]) -> str:
    """Return the first paragraph of what a class says about itself, as one line without markup.

    Example:
        >>> from leaktight.core.defence import Undefended
        >>> gist(Undefended), gist(Undefended()) == gist(Undefended)
        ('No defence: every message goes out as it is.', True)
    """
    return " ".join((inspect.getdoc(part) or "").partition("\n\n")[0].split()).replace("`", "")


def class_name(label: int, names: Sequence[str] = ()) -> str:
    """Return what a class is called: its name, or its number if nobody says.

    Example:
        >>> class_name(1, ("cat", "dog")), class_name(7)
        ('dog', '7')
    """
    return names[label] if 0 <= label < len(names) else str(label)


def not_broken(attacks: Sequence[str]) -> str:
    """Say that attacks did not get through, and which they were: nothing is known of any other.

    Example:
        >>> not_broken(["dlg2019", "geiping2020"])
        'was not broken by the attacks tried (dlg2019 and geiping2020)'
    """
    return f"was not broken by the {'attack' if len(attacks) == 1 else 'attacks'} tried ({join_words(attacks)})"


def title_of(reading: str) -> str:
    """Return what a reading is called in a report.

    Example:
        >>> title_of("psnr"), title_of("leak_auc"), title_of("v_information_share")
        ('PSNR', 'leak AUC', 'V-information, share')
    """
    return quantity_of(reading).title
