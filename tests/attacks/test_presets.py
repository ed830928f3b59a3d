"""Presets carry their source's values, one by one."""

import pytest

from leaktight.attacks import PRESETS, preset
from leaktight.attacks.presets import ABOUT
from leaktight.attacks.search_presets import SEARCHES
from leaktight.core.errors import InvalidValue
from leaktight.core.threat import Knows
from leaktight.priors import TotalVariation

# name: descent, learning rate, distance, sign, box, weight of total variation (or the kind of another prior),
# iterations, restarts, initial, decay
SOURCES = {
    "dlg2019": ("lbfgs", 1.0, "l2", "none", False, "flat", 300, 1, "randn", "none"),
    "idlg2020": ("lbfgs", 1.0, "l2", "none", False, "flat", 300, 1, "randn", "none"),
    "fan2020": ("lbfgs", 1.0, "l2", "none", False, "flat", 300, 1, "pattern", "none"),
    "fan2020-adaptive": ("guarded_lbfgs", 1.0, "likelihood", "none", True, "generic", 300, 8, "features", "none"),
    "geiping2020": ("adam", 0.1, "cosine", "none", True, 1e-1, 4800, 1, "randn", "steps"),
    "geiping2020-cli": ("adam", 0.1, "cosine", "hard", True, 1e-4, 24000, 1, "randn", "steps"),
    "breaching-invertinggradients": ("adam", 0.1, "cosine", "hard", True, 0.1, 24000, 1, "randn", "steps"),
    "breaching-modern": ("adam", 0.1, "cosine", "soft", True, 0.1, 24000, 1, "pattern", "cosine"),
    "ats2021-adam-cosine": ("adam", 0.1, "cosine", "hard", True, 1e-4, 4800, 1, "randn", "steps"),
    "ats2021-adam-l1": ("adam", 0.1, "l1", "hard", True, 1e-4, 4800, 1, "randn", "steps"),
    "ats2021-adam-l2": ("adam", 0.1, "l2", "hard", True, 1e-4, 4800, 1, "randn", "steps"),
    "ats2021-sgd-cosine": ("sgd", 0.01, "cosine", "hard", True, 1e-4, 4800, 1, "randn", "steps"),
    "ats2021-lbfgs-cosine": ("lbfgs", 1e-4, "cosine", "hard", True, 1e-4, 300, 16, "randn", "none"),
    "ats2021-adaptive": ("guarded_lbfgs", 1.0, "likelihood", "none", True, "generic", 300, 8, "class_means", "none"),
    "posterior": ("guarded_lbfgs", 1.0, "likelihood", "none", True, "generic", 300, 8, "features", "none"),
    "free-loss": ("guarded_lbfgs", 1.0, "likelihood", "none", True, "generic", 300, 8, "features", "none"),
    "public-head": ("guarded_lbfgs", 1.0, "likelihood", "none", True, "generic", 300, 8, "features", "none"),
    "features-first": ("guarded_lbfgs", 1.0, "likelihood", "none", True, "generic", 20, 1, "features", "none"),
    "ats2021-lbfgs-l2": ("lbfgs", 1e-4, "l2", "none", False, 1e-3, 50, 2, "randn", "none"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_preset_has_its_source_s_values(name):
    attack = PRESETS[name]
    found = (
        attack.descent.kind,
        attack.descent.learning_rate,
        attack.distance,
        attack.sign,
        attack.box,
        attack.prior.weight if isinstance(attack.prior, TotalVariation) else attack.prior.kind,
        attack.iterations,
        attack.restarts,
        attack.initial,
        attack.decay,
    )
    assert found == SOURCES[name]


def test_every_preset_is_covered_and_labels_are_the_source_s():
    assert set(SEARCHES) == set(SOURCES)
    assert PRESETS["dlg2019"].labels == "joint"
    assert PRESETS["idlg2020"].labels == "read"
    assert PRESETS["fan2020"].labels == "joint"
    assert PRESETS["breaching-modern"].prior.colours


def test_the_adaptive_presets_are_the_posterior_attack_in_their_source_s_protocol():
    ours = ["fan2020-adaptive", "ats2021-adaptive", "posterior", "free-loss", "public-head", "features-first"]
    assert [name for name in SOURCES if Knows.DEFENCE in PRESETS[name].needs] == ours
    fan, ats, plain, free, head, short = (dict(PRESETS[name]) for name in ours)
    assert {name for name in plain if plain[name] != free[name]} == {"loss", "preset"}
    assert {name for name in plain if plain[name] != head[name]} == {"loss", "layers", "preset"}
    assert {name for name in plain if plain[name] != fan[name]} == {"labels", "preset"}
    assert {name for name in plain if plain[name] != ats[name]} == {"initial", "preset"}
    assert {name for name in plain if plain[name] != short[name]} == {
        "iterations",
        "restarts",
        "phases",
        "widen",
        "preset",
    }
    assert (fan["labels"], plain["labels"]) == ("joint", "auto")
    assert PRESETS["posterior"].needs == {Knows.DEFENCE}
    assert PRESETS["ats2021-adaptive"].needs == {Knows.DEFENCE, Knows.AUXILIARY}


def test_an_unknown_preset_names_the_closest():
    with pytest.raises(InvalidValue, match="Did you mean `geiping2020`"):
        preset("geipping2020")


def test_every_preset_says_what_it_is_and_whether_it_is_ours():
    assert set(ABOUT) == set(PRESETS)
    ours = {name for name, text in ABOUT.items() if text.startswith("Ours, no paper's: ")}
    assert ours == {"fan2020-adaptive", "ats2021-adaptive", "posterior", "free-loss", "public-head", "features-first"}
