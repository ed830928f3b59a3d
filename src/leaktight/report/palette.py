"""Palette: one colour and one symbol for each kind of defence, the same in all charts of a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from leaktight.core.defence import Defence, is_undefended
from leaktight.findings.display import family_of
from leaktight.findings.sweep import sweeps
from leaktight.report.chart import Stroke, Symbol

COLOURS = 8
"""How many colours the style sheet has: Okabe and Ito's, told apart also by readers with colour blindness."""
BARE = "bare"
"""The colour of no defence."""
_SYMBOLS: tuple[Symbol, ...] = ("circle", "square", "diamond", "up", "down", "cross")
_STROKES: tuple[Stroke, ...] = ("dots", "dashes", "solid")


@dataclasses.dataclass(frozen=True)
class Palette:
    """How each kind of defence is drawn.

    Args:
        families: the number of each, in the order of the plan.
        members: the family of each defence, and its place in it from weak to strong as a share, by its key.
    """

    families: Mapping[str, int]
    members: Mapping[str, tuple[str, float]]

    @classmethod
    def of(cls, defences: Iterable[Defence]) -> Palette:
        """Return a palette for these defences, in their order.

        Example:
            >>> from leaktight.defences import GaussianNoise, TopK
            >>> palette = Palette.of([TopK(share=0.1), GaussianNoise(std=0.1), TopK(share=0.3)])
            >>> palette.colour_of("top-k"), palette.colour_for(GaussianNoise(std=0.1))
            ('colour0', 'colour1')
        """
        known = {defence.key: defence for defence in defences if not is_undefended(defence)}
        members: dict[str, tuple[str, float]] = {}
        for sweep in sweeps(list(known.values())):
            for place, (_, defence) in enumerate(sweep.members, start=1):
                members.setdefault(defence.key, (sweep.family, place / len(sweep.members)))
        for key, defence in known.items():
            members.setdefault(key, (family_of(defence), 1.0))
        families = dict.fromkeys(members[key][0] for key in known)
        return cls({family: number for number, family in enumerate(families)}, members)

    def colour_of(self, family: str) -> str:
        """Return the colour of a kind of defence, as a class of the style sheet; of an unknown one, that of none."""
        return f"colour{self.families[family] % COLOURS}" if family in self.families else BARE

    def symbol_of(self, family: str) -> Symbol:
        """Return the symbol of a kind of defence: another one for each use of the same colour."""
        number = self.families.get(family)
        return "star" if number is None else _SYMBOLS[(number + number // COLOURS) % len(_SYMBOLS)]

    def colour_for(self, defence: Defence) -> str:
        """Return the colour of a defence: that of its kind."""
        return self.colour_of(self.members.get(defence.key, (family_of(defence), 1.0))[0])

    def stroke_for(self, defence: Defence) -> Stroke:
        """Return how the line of a defence is drawn: the stronger, the fuller."""
        share = self.members.get(defence.key, ("", 1.0))[1]
        return _STROKES[min(len(_STROKES) - 1, int(share * len(_STROKES) - 1e-9))]
