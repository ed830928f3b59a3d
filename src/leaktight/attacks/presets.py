"""Presets: attacks by name, ready to use in a plan."""

from __future__ import annotations

from typing import Any

from leaktight.attacks.analytic import Analytic
from leaktight.attacks.learned_inverter import LearnedInverter
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.search_presets import SEARCHES, SEARCHES_ABOUT
from leaktight.attacks.strongest import Strongest
from leaktight.core.attack import Attack
from leaktight.core.errors import unknown

PRESETS: dict[str, Attack] = {
    "strongest": Strongest(),
    "analytic": Analytic(),
    "learned-inverter": LearnedInverter(),
    **SEARCHES,
}

ABOUT: dict[str, str] = {
    "strongest": (
        "Every attack that fits, without settings: exact algebra, a learned inverter where public examples are known, "
        "and searches that know the defence; in split learning every attack on labels. Cheap attacks come first, "
        "expensive ones look at what is not read yet."
    ),
    "analytic": "The attack by its defaults: no search.",
    "learned-inverter": (
        "Ours, after Learning to Invert (Wu et al. 2023): a regression from messages to images, learned from messages "
        "that the attacker makes with the real defence from public images. No search, and no knowledge of what the "
        "defence does; it only has to be played."
    ),
    **SEARCHES_ABOUT,
}
"""What each preset is, for `leaktight explain`."""


def preset(name: str, **overrides: Any) -> Attack:
    """Return a preset, with some settings changed; a changed one is marked by a star.

    Example:
        >>> preset("dlg2019", iterations=10).preset
        'dlg2019*'
    """
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    attack = PRESETS[name]
    if not overrides:
        return attack
    marked = {"preset": f"{name}*"} if isinstance(attack, GradientMatching) else {}
    return type(attack).model_validate({**attack.to_dict(), **marked, **overrides})
