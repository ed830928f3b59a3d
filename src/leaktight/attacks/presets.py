"""Presets: attack settings by the name of their source if they have one, because "Inverting Gradients" has a different default in every tool.

`fan2020` is the protocol of the secret polarization network (Fan et al. 2020, Algorithm 5): Deep Leakage with pattern
initialisation, by an attacker who does not know that a private loss exists. `fan2020-adaptive` is ours, no paper's: the same attacker
who knows the defence, searches its secrets along, and does not match entries that were left out. Two things were chosen by trying, on four CIFAR-10 images, one at a time, with an untrained DLNet and alpha2 of
0.1 and 0.5: labels searched along, which did better than labels read first, and L-BFGS with 100 pairs rather than 30. At alpha2 of
0.1 the squared distance also did better than one relative to each layer. On eight other images labels searched along went wrong for
one at alpha2 of 0.1, and at 0.01 at least half of the searches failed, where the plain attack succeeds: run both.

`ats2021-adaptive` and `ats2021-adaptive-each` are ours too: `ats2021-adam-cosine` by an attacker who knows the set of transformations
and has public examples. It searches for images as they were before, through the expected transformation or through each in turn,
from the mean public image of the class. The first ended below its own start in our trials: run `each` beside it.

`strongest-matching` has no source either: the strongest setting of this search that we know, for audits. Cosine distance, the sign of the
gradient, pixels in [0, 1], a weak image prior, and entries that were not sent are not matched. On an untrained DLNet and crops of
photographs it recognised what `idlg2020` did not under Gaussian noise of 0.001 and under top-k sharing of a tenth. It models no noise and
knows no defence, so it is no bound on what an attack can do.
"""

from __future__ import annotations

from typing import Any

from leaktight.attacks.analytic import Analytic
from leaktight.attacks.descent import SgdDescent
from leaktight.attacks.lbfgs import LbfgsDescent
from leaktight.attacks.matching import GradientMatching
from leaktight.core.attack import Attack
from leaktight.core.errors import unknown

_DLG: dict[str, Any] = {"distance": "l2", "descent": LbfgsDescent(learning_rate=1.0), "iterations": 300}
_GEIPING: dict[str, Any] = {"distance": "cosine", "iterations": 4800, "box": True, "decay": "steps", "total_variation": 1e-1}
_ATS: dict[str, Any] = {**_GEIPING, "total_variation": 1e-4, "sign": "hard"}
_ATS_ADAPTIVE: dict[str, Any] = {**_ATS, "models_defence": True, "initial": "class_means"}
_STRONGEST: dict[str, Any] = {**_ATS, "entries": "sent", "total_variation": 3e-4, "iterations": 600}
_FAN: dict[str, Any] = {**_DLG, "initial": "pattern", "labels": "joint"}
_LBFGS_SMALL = LbfgsDescent(learning_rate=1e-4)

PRESETS: dict[str, Attack] = {
    "analytic": Analytic(),
    **{
        name: GradientMatching(preset=name, **settings)
        for name, settings in {
            "dlg2019": {**_DLG, "labels": "joint"},
            "idlg2020": {**_DLG, "labels": "read"},
            "fan2020": _FAN,
            "fan2020-adaptive": {**_FAN, "models_defence": True, "entries": "sent"},
            "geiping2020": _GEIPING,
            "geiping2020-cli": {**_GEIPING, "sign": "hard", "total_variation": 1e-4, "iterations": 24000},
            "breaching-invertinggradients": {**_GEIPING, "sign": "hard", "iterations": 24000},
            "breaching-modern": {
                **_GEIPING,
                "sign": "soft",
                "iterations": 24000,
                "colours": True,
                "initial": "pattern",
                "decay": "cosine",
            },
            "ats2021-adam-cosine": _ATS,
            "ats2021-adam-l1": {**_ATS, "distance": "l1"},
            "ats2021-adam-l2": {**_ATS, "distance": "l2"},
            "ats2021-sgd-cosine": {**_ATS, "descent": SgdDescent()},
            "ats2021-lbfgs-cosine": {**_ATS, "descent": _LBFGS_SMALL, "iterations": 300, "restarts": 16, "decay": "none"},
            "ats2021-adaptive": _ATS_ADAPTIVE,
            "ats2021-adaptive-each": {**_ATS_ADAPTIVE, "outcomes": "each"},
            "strongest-matching": _STRONGEST,
            "ats2021-lbfgs-l2": {
                "distance": "l2",
                "descent": _LBFGS_SMALL,
                "iterations": 50,
                "restarts": 2,
                "total_variation": 1e-3,
            },
        }.items()
    },
}


def preset(name: str, **overrides: Any) -> Attack:
    """Return a preset, with some settings changed; a changed one is marked by a star.

    Example:
        >>> preset("dlg2019", iterations=10).preset
        'dlg2019*'
    """
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    found = PRESETS[name]
    if not overrides:
        return found
    marked = {"preset": f"{name}*"} if isinstance(found, GradientMatching) else {}
    return type(found).model_validate({**found.to_dict(), **marked, **overrides})
