"""Presets of gradient matching, named by their source: "Inverting Gradients" has a different default in every tool."""

from __future__ import annotations

from typing import Any

from leaktight.attacks.guarded_lbfgs import SearchGuardedLBFGS
from leaktight.attacks.lbfgs import SearchLBFGS
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.optimiser import SearchSGD
from leaktight.priors import Generic, TotalVariation

_DLG: dict[str, Any] = {"distance": "l2", "descent": SearchLBFGS(learning_rate=1.0), "iterations": 300}
_GEIPING: dict[str, Any] = {
    "distance": "cosine",
    "iterations": 4800,
    "box": True,
    "decay": "steps",
    "prior": TotalVariation(weight=1e-1),
}
_ATS: dict[str, Any] = {**_GEIPING, "prior": TotalVariation(weight=1e-4), "sign": "hard"}
_POSTERIOR: dict[str, Any] = {
    "distance": "likelihood",
    "prior": Generic(),
    "descent": SearchGuardedLBFGS(),
    "iterations": 300,
    "initial": "features",
    "restarts": 8,
    "phases": 4,
    "widen": 30.0,
    "box": True,
    "labels": "auto",
    "settle": 1.0,
}
_FAN: dict[str, Any] = {**_DLG, "initial": "pattern", "labels": "joint"}
_LBFGS_SMALL = SearchLBFGS(learning_rate=1e-4)

SEARCHES: dict[str, GradientMatching] = {
    name: GradientMatching(preset=name, **settings)
    for name, settings in {
        "dlg2019": {**_DLG, "labels": "joint"},
        "idlg2020": {**_DLG, "labels": "read"},
        "fan2020": _FAN,
        "fan2020-adaptive": {**_POSTERIOR, "labels": "joint"},
        "geiping2020": _GEIPING,
        "geiping2020-cli": {**_GEIPING, "sign": "hard", "prior": TotalVariation(weight=1e-4), "iterations": 24000},
        "breaching-invertinggradients": {**_GEIPING, "sign": "hard", "iterations": 24000},
        "breaching-modern": {
            **_GEIPING,
            "sign": "soft",
            "iterations": 24000,
            "prior": TotalVariation(weight=1e-1, colours=True),
            "initial": "pattern",
            "decay": "cosine",
        },
        "ats2021-adam-cosine": _ATS,
        "ats2021-adam-l1": {**_ATS, "distance": "l1"},
        "ats2021-adam-l2": {**_ATS, "distance": "l2"},
        "ats2021-sgd-cosine": {**_ATS, "descent": SearchSGD()},
        "ats2021-lbfgs-cosine": {**_ATS, "descent": _LBFGS_SMALL, "iterations": 300, "restarts": 16, "decay": "none"},
        "ats2021-adaptive": {**_POSTERIOR, "initial": "class_means"},
        "posterior": _POSTERIOR,
        "free-loss": {**_POSTERIOR, "loss": "free"},
        "public-head": {**_POSTERIOR, "loss": "free", "layers": ("head",)},
        "features-first": {**_POSTERIOR, "iterations": 20, "restarts": 1, "phases": 1, "widen": 1.0},
        "ats2021-lbfgs-l2": {
            "distance": "l2",
            "descent": _LBFGS_SMALL,
            "iterations": 50,
            "restarts": 2,
            "prior": TotalVariation(weight=1e-3),
        },
    }.items()
}

_OWN_LABELS = "The source gives the attacker the labels; here they are read off the last layer."
SEARCHES_ABOUT: dict[str, str] = {
    "dlg2019": "Deep Leakage from Gradients (Zhu et al. 2019): images and soft labels are searched jointly by L-BFGS.",
    "idlg2020": "iDLG (Zhao et al. 2020): as `dlg2019`, but labels are read off the last layer first.",
    "fan2020": (
        "The protocol of the secret polarization network (Fan et al. 2020, Algorithm 5): Deep Leakage with pattern "
        "initialisation, by an attacker who does not know that a private loss exists."
    ),
    "fan2020-adaptive": (
        "Ours, no paper's: the attacker of `fan2020` who knows the defence. It is `posterior` with labels that are "
        "searched jointly, which a private loss may hide, together with the private head and codes."
    ),
    "geiping2020": f"Inverting Gradients (Geiping et al. 2020) by the defaults of the published class. {_OWN_LABELS}",
    "geiping2020-cli": "Inverting Gradients (Geiping et al. 2020) by the defaults of the published command line. "
    f"{_OWN_LABELS}",
    "breaching-invertinggradients": (
        "Inverting Gradients as the library `breaching` sets it. Its total variation of 0.2, at half scale, is 0.1 "
        "here."
    ),
    "breaching-modern": (
        "The attack `modern` of the library `breaching`: a soft sign, a prior across colours, and pattern "
        "initialisation."
    ),
    **{
        f"ats2021-{name}": f"One of the attacks in the transformation search (Gao et al. 2021): {words}. {_OWN_LABELS}"
        for name, words in {
            "adam-cosine": "Adam and cosine distance",
            "adam-l1": "Adam and L1 distance",
            "adam-l2": "Adam and squared distance",
            "sgd-cosine": "SGD and cosine distance",
            "lbfgs-cosine": "L-BFGS, cosine distance and 16 restarts",
            "lbfgs-l2": "L-BFGS, squared distance and 2 restarts",
        }.items()
    },
    "ats2021-adaptive": (
        "Ours, no paper's: `posterior` from the mean public image of the class, against transformed images: each "
        "transformation that may have been drawn is tried, and the best kept. It was `ats2021-adam-cosine` through "
        "the expected transformation, which ended below its start."
    ),
    "posterior": (
        "Ours, no paper's: searches for the most likely image under the known defence and a prior of images that "
        "needs no data. The defence's channel says how likely a message is, noise, clipping, entries that were not "
        "sent and secrets included; no weight is chosen by hand. Guarded L-BFGS in the prior's coordinates, from the "
        "features that the first linear layer shows and from the prior, raced. Its settings were chosen on CIFAR-10 "
        "training images."
    ),
    "free-loss": (
        "Ours, no paper's: `posterior` without any guess at what a private loss is. Its gradient at the features is "
        "one more unknown, in place of private heads, codes and keys; a public head that the defence leaves alone is "
        "matched as well."
    ),
    "public-head": (
        "Ours, no paper's: `posterior` by what the public head sent alone, which a private loss beside it does not "
        "touch: features and labels are read off its gradient, and images searched that have them."
    ),
    "features-first": (
        "Ours, no paper's: `posterior` with one candidate and few evaluations after the features of the first linear "
        "layer were inverted. For large networks, where an evaluation is dear."
    ),
}
"""What each preset is, for `leaktight explain`."""
