from typing import Any, ClassVar

import pytest

from leaktight.attacks import GanAttack, preset
from leaktight.attacks.strongest import Strongest
from leaktight.core.attack import Attack, Guess
from leaktight.core.defence import Chain
from leaktight.core.metric import Reading
from leaktight.core.record import Status
from leaktight.data import Digits
from leaktight.defences import DPSGD, ClassKeys, GaussianNoise, SumKL, TopK, Transformation
from leaktight.findings.flags_coverage import one_message_at_a_time, one_stage_attacked
from leaktight.learning import Federated, Split
from leaktight.models import MLP
from leaktight.transforms import Policy

JOINED = {"attack": preset("posterior", messages="joined"), "label": "joined"}
DRAWN = [
    GaussianNoise(),
    DPSGD(),
    SumKL(),
    Transformation(policy=Policy.of("3-1-7")),
    Chain(links=(TopK(), GaussianNoise())),
]


class Suite(Attack):
    """Tries an attack that joins messages; without a default kind it stays out of the registry."""

    claims: ClassVar[frozenset[str]] = frozenset({"inputs"})

    def member(self, name: str) -> Attack:
        return {"joined": JOINED["attack"], "dlg2019": preset("dlg2019")}[name]

    def run(self, *args: Any) -> Guess:
        raise NotImplementedError


SUITE = Suite.model_construct(kind="suite")


@pytest.mark.parametrize("defence", DRAWN, ids=lambda defence: defence.kind)
def test_a_defence_that_draws_anew_must_meet_an_attack_on_several_messages(made, defence):
    one = made.record(defence)
    (flag,) = one_message_at_a_time([made.record(), one])
    assert (flag.severity, flag.cells) == ("doubt", (one.cell.key,))
    assert "every attack took messages one at a time" in flag.sentence
    assert one_message_at_a_time([one, made.record(defence, **JOINED)]) == []


@pytest.mark.parametrize("defence", [TopK(), ClassKeys(), GaussianNoise(std=0.0)], ids=lambda defence: defence.kind)
def test_a_defence_that_draws_nothing_anew_need_not(made, defence):
    assert one_message_at_a_time([made.record(defence)]) == []


@pytest.mark.parametrize(("passes", "flags"), [((0.6,), 1), ((0.6, 0.7), 0), ((), 0)])
def test_scores_that_were_added_up_over_passes_join_messages(made, passes, flags):
    added = Reading(name="leak_auc_passes", value=0.7, chance=0.5, leaks="high", each=passes)
    record = made.record(SumKL(), psnr=None, extra=(added,))
    assert len(one_message_at_a_time([record])) == flags


def test_a_joint_attack_that_failed_or_met_another_defence_does_not_count(made):
    failed = made.record(GaussianNoise(), status=Status.FAILED, reason="no", **JOINED)
    assert one_message_at_a_time([made.record(GaussianNoise()), failed])
    (flag,) = one_message_at_a_time([made.record(GaussianNoise()), made.record(SumKL(), **JOINED)])
    assert "What is drawn under Gaussian noise" in flag.sentence


@pytest.mark.parametrize(("rounds", "flags"), [(0, 0), (1, 0), (2, 1)])
def test_who_sends_one_message_is_attacked_by_it(made, rounds, flags):
    scenario = Federated(data=Digits(), model=MLP(), rounds=rounds)
    assert len(one_message_at_a_time([made.record(GaussianNoise(), scenario=scenario)])) == flags


@pytest.mark.parametrize(
    ("length", "notes", "flags"),
    [
        ({"passes": 1}, {}, 0),
        ({"passes": 3}, {}, 1),
        ({"rounds": 20}, {"split.passes_trained": 0.9}, 0),
        ({"rounds": 40}, {"split.passes_trained": 1.8}, 1),
        ({"rounds": 40}, {}, 1),
    ],
)
def test_split_learning_sends_several_messages_of_a_row_in_several_passes(made, length, notes, flags):
    scenario = Split.model_validate({"data": {"kind": "rare_digit"}, "model": {"kind": "mlp", "hidden": [8]}, **length})
    assert len(one_message_at_a_time([made.record(SumKL(), scenario=scenario, notes=notes)])) == flags


def test_a_member_that_is_not_known_any_more_joins_nothing(made):
    extra = made.image_readings(9)[0].model_copy(update={"by": "forgotten"})
    record = made.record(GaussianNoise(), attack=Strongest(), label="suite", extra=(extra,))
    assert record.members == ("forgotten",)
    assert len(one_message_at_a_time([record])) == (not Strongest().joins)


@pytest.mark.parametrize(("member", "flags"), [("joined", 0), ("dlg2019", 1)])
def test_a_suite_counts_by_its_attacks(made, member, flags):
    reading = Reading(name="psnr", value=20, by=member)
    record = made.record(GaussianNoise(), attack=SUITE, label="strongest", extra=(reading,))
    assert len(one_message_at_a_time([record])) == flags


@pytest.mark.parametrize(("stage", "severity"), [("initial", "info"), ("early", "doubt"), ("end", "doubt")])
def test_one_moment_of_a_training_is_not_all(made, stage, severity):
    (flag,) = one_stage_attacked([made.record(stage=stage), made.record(TopK(), stage=stage)])
    assert (flag.severity, len(flag.cells)) == (severity, 2)
    assert "only, and may tell more at another moment" in flag.sentence
    assert f"`{stage}`" not in flag.sentence


def test_several_moments_or_all_of_the_training_are_enough(made):
    assert one_stage_attacked([made.record(stage="initial"), made.record(stage="end")]) == []
    assert one_stage_attacked([made.record(stage="training")]) == []
    assert one_stage_attacked([made.control(), made.null()]) == []


def test_an_untrained_model_has_one_moment_and_who_sits_inside_sees_all(made):
    assert one_stage_attacked([made.record(scenario=Federated(data=Digits(), model=MLP(), rounds=0))]) == []
    assert one_stage_attacked([made.record(stage="end", attack=GanAttack(), label="gan")]) == []


def test_a_failed_cell_is_no_second_moment_and_scenarios_count_apart(made):
    failed = made.record(stage="end", status=Status.FAILED, reason="no")
    assert len(one_stage_attacked([made.record(), failed])) == 1
    other = {"scenario": made.SCENARIO.model_copy(update={"rounds": 5})}
    records = [made.record(), made.record(stage="end"), made.record(stage="end", **other)]
    (flag,) = one_stage_attacked(records)
    assert flag.sentence.startswith("In scenario 2: messages were attacked after training only")
