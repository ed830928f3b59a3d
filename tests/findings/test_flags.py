import inspect
from typing import Literal

import pytest
import torch

from leaktight.attacks import GanAttack
from leaktight.attacks.strongest import Strongest
from leaktight.core.defence import Chain, Defence
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.core.threat import Knows
from leaktight.defences import (
    DPSGD,
    ClassKeys,
    GaussianNoise,
    IsotropicNoise,
    LaplaceNoise,
    LayerGuard,
    MaxNorm,
    SumKL,
    TopK,
)
from leaktight.findings.contest import entries_of
from leaktight.findings.flags import CHECKS, raise_flags
from leaktight.findings.flags_attacks import attack_at_chance, leakage_grows, only_non_adaptive
from leaktight.findings.flags_soundness import (
    control_not_exact,
    far_from_chance,
    incomplete,
    keys_beyond_features,
    noise_is_not_privacy,
    null_above_chance,
    prices_not_paired,
    privacy_without_epsilon,
    utility_at_majority,
)
from leaktight.findings.images import recognised_share
from leaktight.findings.rows import rows_of
from leaktight.learning.evaluate import accuracy_reading


def test_every_check_says_why_it_exists():
    assert all(len(inspect.getdoc(check)) > 40 for check in CHECKS)
    assert len({check.__name__ for check in CHECKS}) == len(CHECKS)


def test_a_sound_audit_raises_nothing(made):
    adaptive = {"attack": made.ADAPTIVE, "label": "adaptive", "knows": (Knows.DEFENCE,)}
    kept = {"accuracy": None, "extra": (accuracy_reading(torch.arange(100) < 80, torch.arange(100) % 10, keep=True),)}
    records = [made.control(), made.null()]
    for stage in ("initial", "end"):
        records += [
            made.record(psnr=38, stage=stage, **kept),
            made.record(TopK(), psnr=20, stage=stage, **adaptive, **kept),
        ]
    assert raise_flags(records) == ()


def test_doubts_come_before_notes(made):
    severities = [flag.severity for flag in raise_flags(made.audit())]
    assert severities == sorted(severities)
    assert set(severities) == {"doubt", "info"}


@pytest.mark.parametrize(("whichever", "flags"), [(0.3, 1), (0.97, 0)])
def test_an_attack_that_shows_another_class_of_the_attacked_is_not_at_chance(made, whichever, flags):
    readings = [
        Reading(name=name, value=value, low=value - 0.02, high=value + 0.02, chance=chance, leaks="high")
        for name, value, chance in (("recognised", 0.0, 0.1), ("recognised_any", whichever, 0.5))
    ]
    assert len(attack_at_chance([made.record(psnr=None, extra=tuple(readings))])) == flags


def test_keys_that_are_longer_than_what_is_before_them_is_wide_are_told(made):
    notes = {"class_keys.dimensions": 4096.0, "class_keys.effective_length": 84.0}
    long = made.record(ClassKeys(), notes=notes)
    [flag] = keys_beyond_features([made.record(), long])
    assert (flag.severity, flag.cells) == ("info", (long.cell.key,))
    assert "Class keys of 4,096 dimensions behind 84 features are as long as keys of 84" in flag.sentence
    assert keys_beyond_features([made.record(ClassKeys(), notes={**notes, "class_keys.dimensions": 84.0})]) == []
    assert keys_beyond_features([made.record(ClassKeys(), notes={"class_keys.dimensions": 4096.0})]) == []


def test_an_attack_at_chance_without_defence_is_flagged_where_it_is(made):
    blind, fine = made.record(psnr=10, batch_size=8), made.record(psnr=38)
    (flag,) = attack_at_chance([blind, fine])
    assert flag.cells == (blind.cell.key,)
    assert "batches of 8, before training" in flag.sentence
    assert "batches of 1" not in flag.sentence
    assert attack_at_chance([fine, made.record(TopK(), psnr=5)]) == []


def test_an_interval_that_reaches_chance_is_at_chance(made):
    assert attack_at_chance([made.record(psnr=made.GREY + 1)])
    assert not attack_at_chance([made.record(psnr=made.GREY + 2)])


def test_only_attacks_that_ignore_the_defence_are_flagged(made):
    naive = made.record(TopK())
    (flag,) = only_non_adaptive([made.record(), naive])
    assert flag.severity == "doubt"
    assert "No attack that models the defence was run against top-k, and an attacker will learn" in flag.sentence
    assert flag.cells == (naive.cell.key,)
    (known,) = only_non_adaptive([made.record(TopK(), knows=(Knows.DEFENCE,))])
    assert "although the threat model says that the attacker knows it" in known.sentence
    adaptive = made.record(TopK(), attack=made.ADAPTIVE, label="adaptive", knows=(Knows.DEFENCE,))
    assert only_non_adaptive([naive, adaptive]) == []


@pytest.mark.parametrize(("knows", "models"), [((Knows.LOCAL_STEPS,), False), ((Knows.DEFENCE,), True)])
def test_an_attack_models_a_defence_only_where_it_is_told_of_it(made, knows, models):
    alone = made.record(TopK(), attack=made.ADAPTIVE, label="adaptive", knows=knows)
    team = made.record(
        TopK(), extra=made.members({"search": 9, "simple": 8}), attack=made.TEAM, label="team", knows=knows
    )
    for record in (alone, team):
        assert len(only_non_adaptive([record])) == (not models)
    rows = rows_of([alone, team])
    assert [part.adaptive for row in rows for part in row.attacks] == [models, models, False]
    assert {entry.name: entry.adaptive for found in entries_of([alone, team]).values() for entry in found} == {
        "adaptive": models,
        "search (of team)": models,
        "simple (of team)": False,
    }


def test_a_member_that_is_not_known_any_more_is_read_all_the_same(made):
    extra = tuple(r.model_copy(update={"by": "forgotten"}) for r in made.image_readings(38))
    record = made.record(TopK(), psnr=9, extra=extra, attack=Strongest(), label="suite", knows=(Knows.DEFENCE,))
    [row] = rows_of([record])
    [part] = row.attacks
    assert (part.attack, part.principle, part.adaptive, recognised_share(part).value) == ("forgotten", None, False, 1.0)
    assert entries_of([record]) == {(1, TopK().key, 1, "initial"): []}
    assert raise_flags([record])


def test_an_attack_that_adapts_to_one_defence_still_ignores_others(made):
    estimated, random = GanAttack(), GanAttack(class_key="random")
    keys, both = ClassKeys(), Chain(links=(ClassKeys(), TopK()))
    assert [flag.name for flag in only_non_adaptive([made.record(TopK(), attack=estimated, label="gan")])] == [
        "only_non_adaptive"
    ]
    assert only_non_adaptive([made.record(keys, attack=estimated, label="gan")]) == []
    assert only_non_adaptive([made.record(both, attack=estimated, label="gan")])
    assert only_non_adaptive([made.record(keys, attack=random, label="gan")])
    rows = rows_of([made.record(defence, attack=estimated, label="gan") for defence in (keys, TopK())])
    assert [row.adaptive for row in rows] == [True, False]


def test_an_adaptive_attack_that_failed_does_not_count(made):
    failed = made.record(TopK(), attack=made.ADAPTIVE, label="adaptive", status=Status.FAILED, reason="no")
    assert only_non_adaptive([made.record(TopK()), failed])


def test_leakage_that_grows_with_strength_is_flagged(made):
    records = [made.record(psnr=38)] + [
        made.record(TopK(share=share), psnr=psnr) for share, psnr in ((0.3, 15), (0.1, 25), (0.01, 9))
    ]
    (flag,) = leakage_grows(records)
    assert "from top-k (share 0.3) to top-k (share 0.1)" in flag.sentence
    assert "share 0.01" not in flag.sentence


def test_a_defence_that_leaks_more_than_none_is_flagged(made):
    (flag,) = leakage_grows([made.record(psnr=20), made.record(GaussianNoise(std=0.1), psnr=30)])
    assert "from no defence to Gaussian noise (std 0.1)" in flag.sentence


def test_leakage_that_creeps_up_over_several_strengths_is_flagged(made):
    records = [made.record(TopK(share=share), psnr=psnr) for share, psnr in ((0.3, 15), (0.2, 16.75), (0.1, 18.5))]
    (flag,) = leakage_grows(records)
    assert "from top-k (share 0.3) to top-k (share 0.1)" in flag.sentence


def test_growth_within_the_interval_or_below_chance_is_no_doubt(made):
    assert not leakage_grows([made.record(GaussianNoise(std=s), psnr=p) for s, p in ((0.1, 20), (0.2, 22))])
    assert not leakage_grows([made.record(GaussianNoise(std=s), psnr=p) for s, p in ((0.1, 2), (0.2, 8))])


def test_a_model_at_the_majority_class_is_flagged(made):
    (flag,) = utility_at_majority([made.record(), made.record(GaussianNoise(std=1), accuracy=0.11)])
    assert "With Gaussian noise (std 1) the model may, by its interval, be no better" in flag.sentence
    (below,) = utility_at_majority([made.record(), made.record(GaussianNoise(std=1), accuracy=0.09)])
    assert "With Gaussian noise (std 1) the model is no better" in below.sentence
    (bare,) = utility_at_majority([made.record(accuracy=0.1)])
    assert bare.sentence.startswith("Even without defence")
    (both,) = utility_at_majority([made.record(accuracy=0.1), made.record(TopK(), accuracy=0.1)])
    assert len(both.cells) == 2


def test_a_price_without_pairs_says_so(made):
    bare, under = (made.record(defence, accuracy=0.8) for defence in (None, TopK()))
    (flag,) = prices_not_paired([bare, under])
    assert (flag.severity, flag.cells) == ("info", (under.cell.key,))
    assert "was not kept for top-k" in flag.sentence
    hits = (torch.arange(100) < count for count in (80, 70))
    extra = [(accuracy_reading(one, torch.arange(100) % 10, keep=True),) for one in hits]
    kept = [made.record(d, accuracy=None, extra=e) for d, e in zip((None, TopK()), extra, strict=True)]
    assert prices_not_paired(kept) == []
    assert prices_not_paired([bare]) == []


NOISY = [
    GaussianNoise(),
    LaplaceNoise(),
    MaxNorm(),
    Chain(links=(TopK(), GaussianNoise())),
    LayerGuard(guard=GaussianNoise(), layers=("head",)),
    TopK(noise=0.1),
]


@pytest.mark.parametrize("defence", NOISY, ids=str)
def test_noise_is_not_differential_privacy(made, defence):
    assert privacy_without_epsilon([made.record(defence)]) == []
    (flag,) = noise_is_not_privacy([made.record(defence)])
    assert flag.name == "noise_is_not_privacy"
    assert flag.severity == "info"
    assert "not differential privacy" in flag.sentence


@pytest.mark.parametrize("notes", [{}, {"dp_sgd.epsilon": float("inf")}, {"dp_sgd.delta": 1e-5}])
def test_dp_sgd_needs_a_finite_epsilon(made, notes):
    (flag,) = privacy_without_epsilon([made.record(DPSGD(), notes=notes)])
    assert flag.name == "privacy_without_epsilon"
    assert flag.severity == "doubt"


@pytest.mark.parametrize(
    "defence", [TopK(), GaussianNoise(std=0), LayerGuard(guard=GaussianNoise(), layers=("head",), count=0)], ids=str
)
def test_what_promises_nothing_is_not_doubted_for_it(made, defence):
    assert privacy_without_epsilon([made.record(defence)]) == noise_is_not_privacy([made.record(defence)]) == []


class Lawful(Defence):
    """A defence of another package that promises differential privacy."""

    kind: Literal["test_lawful"] = "test_lawful"

    @property
    def promise(self):
        return "dp"


def test_a_promise_of_another_package_needs_its_own_epsilon(made):
    plain, chain = Lawful(), Chain(links=(DPSGD(), Lawful()))
    spent = {"dp_sgd.epsilon": 3.0}
    for record in (made.record(plain), made.record(chain, notes=spent)):
        (flag,) = privacy_without_epsilon([record])
        assert "let it note what it spends" in flag.sentence
    own = {"test_lawful.epsilon": 1.0}
    kept = [made.record(plain, notes=own), made.record(chain, notes={**spent, **own})]
    assert privacy_without_epsilon(kept) == noise_is_not_privacy(kept) == []


def test_an_infinite_epsilon_is_doubted_where_nothing_is_promised(made):
    (flag,) = privacy_without_epsilon([made.record(DPSGD(multiplier=0), notes={"dp_sgd.epsilon": float("inf")})])
    assert "DP-SGD" in flag.sentence


def test_dp_sgd_with_epsilon_is_fine_even_with_more_noise(made):
    chain = Chain(links=(DPSGD(), GaussianNoise()))
    records = [made.record(d, notes={"dp_sgd.epsilon": 3.0}) for d in (DPSGD(), chain)]
    assert privacy_without_epsilon(records) == noise_is_not_privacy(records) == []


def test_controls_must_be_there_and_exact(made):
    assert [flag.name for flag in control_not_exact([made.record()])] == ["control_missing"]
    assert control_not_exact([made.control()]) == []
    wrong, failed = made.control(psnr=55, seed=1), made.control(seed=2, status=Status.FAILED, reason="no")
    (flag,) = control_not_exact([made.control(), wrong, failed])
    assert flag.cells == (wrong.cell.key, failed.cell.key)
    assert "2 of 3 control cells" in flag.sentence


def test_one_inexact_image_is_enough(made):
    assert control_not_exact([made.control(psnr=62.5)])
    assert not control_not_exact([made.control(psnr=63)])


def test_controls_without_images_go_by_relative_error(made):
    def table(value):
        reading = Reading(name="rmse_relative", value=value, leaks="low", against="raw")
        return made.control(psnr=None, extra=(reading,))

    assert control_not_exact([table(1e-5)]) == []
    assert control_not_exact([table(0.1)])
    assert control_not_exact([made.control(psnr=None)])


def test_finding_something_in_noise_is_flagged(made):
    assert null_above_chance([made.null()]) == []
    (flag,) = null_above_chance([made.null(psnr=25, labels=0.0)])
    assert "dlg2019 does better than chance in PSNR, images recognised and labels missed" in flag.sentence
    assert null_above_chance([made.record(psnr=25)]) == []


def test_missing_cells_are_counted_by_status(made):
    failed = [made.record(TopK(share=0.1 * n), status=Status.FAILED, reason="no") for n in range(1, 6)]
    doubt, note = incomplete([made.record(), *failed, made.record(seed=9, status=Status.REFUSED, reason="no")])
    assert doubt.sentence.startswith("5 of 7 cells failed: ")
    assert "and 2 more" in doubt.sentence
    assert note.sentence.startswith("1 of 7 cells was refused: dlg2019 under no defence")
    assert (doubt.severity, note.severity) == ("doubt", "info")
    assert incomplete([made.record()]) == []


def test_where_there_are_several_scenarios_a_flag_says_which(made):
    other = {"scenario": made.SCENARIO.model_copy(update={"rounds": 5})}
    fine = [made.record(psnr=38), made.record(TopK(), psnr=20), made.record(TopK(share=0.01), psnr=10)]
    grows = [made.record(TopK(), psnr=15, **other), made.record(TopK(share=0.01), psnr=30, **other)]
    records = [*fine, made.record(psnr=10, accuracy=0.1, **other), *grows]
    [blind], [growing], [untrained] = attack_at_chance(records), leakage_grows(records), utility_at_majority(records)
    assert "(scenario 2, batches of 1, before training)" in blind.sentence
    assert "(scenario 2, batches of 1, before training)" in growing.sentence
    assert untrained.sentence.startswith("In scenario 2: Even without defence")
    assert not any("scenario" in flag.sentence for flag in attack_at_chance([made.record(psnr=10)]))


def test_a_model_that_learned_nothing_in_one_scenario_does_not_excuse_the_other(made):
    other = {"scenario": made.SCENARIO.model_copy(update={"rounds": 5})}
    records = [made.record(), made.record(TopK(), accuracy=0.1), made.record(accuracy=0.1, **other)]
    first, second = utility_at_majority(records)
    assert first.sentence.startswith("In scenario 1: With top-k")
    assert second.sentence.startswith("In scenario 2: Even without defence")


def test_the_control_of_labels_must_tell_every_one(made):
    def record_of(*each):
        reading = Reading(name="leak_auc", value=1.0, n=len(each), chance=0.5, leaks="high", against="raw", each=each)
        return made.control(psnr=None, extra=(reading,))

    assert control_not_exact([record_of(1.0, 1.0)]) == []
    assert control_not_exact([record_of(1.0, 0.9)])


def test_noise_that_hides_labels_is_not_called_private(made):
    records = [made.record(SumKL(bound=0.4), psnr=None), made.record(IsotropicNoise(), psnr=None)]
    (flag,) = noise_is_not_privacy(records)
    assert (flag.name, flag.severity, len(flag.cells)) == ("noise_is_not_privacy", "info", 2)
    assert "The noise of sumKL and isotropic noise has no epsilon" in flag.sentence
    assert "The bound on the detection of labels that sumKL states holds for Gaussian gradients only" in flag.sentence
    assert "bound" not in noise_is_not_privacy(records[1:])[0].sentence


def test_a_null_view_that_is_lucky_raises_no_flag_and_one_that_knows_does(made):
    def record_of(value):
        reading = Reading(
            name="leak_auc", value=value, low=value - 0.03, high=value + 0.03, n=40, chance=0.5, leaks="high"
        )
        return made.null(psnr=None, extra=(reading,))

    assert null_above_chance([record_of(0.45), record_of(0.5), record_of(0.54)]) == []
    (flag,) = null_above_chance([record_of(0.57)])
    assert "leak AUC" in flag.sentence
    assert far_from_chance(Reading(name="label_distance", value=0.1, low=0.0, high=0.2, chance=0.9, leaks="low"))
    assert not far_from_chance(Reading(name="psnr", value=30, leaks="high"))
