from typing import Any, ClassVar

import pytest

from leaktight.attacks import Analytic, GanAttack, LabelReading, preset
from leaktight.core.attack import Attack, Guess
from leaktight.core.metric import Reading
from leaktight.core.threat import Knows
from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.contest import entries_of
from leaktight.findings.flags_attacks import only_non_adaptive
from leaktight.findings.flags_contests import adaptive_below_plain, cheap_beats_expensive, more_budget_hurts

POSTERIOR = preset("posterior")
GRANTED = (Knows.LOCAL_STEPS, Knows.DEFENCE)


class Suite(Attack):
    """Tries several attacks; without a default kind it stays out of the registry."""

    claims: ClassVar[frozenset[str]] = frozenset({"inputs"})

    def member(self, name: str) -> Attack:
        return {"analytic": Analytic(), "posterior": POSTERIOR, "dlg2019": preset("dlg2019")}[name]

    def run(self, *args: Any) -> Guess:
        raise NotImplementedError


class Learned(Suite):
    """Learns from public data, once."""

    principle: ClassVar[Any] = "learned"


SUITE, LEARNED = Suite.model_construct(kind="suite"), Learned.model_construct(kind="learned")


def part(name, psnr, n=8):
    each: dict[str, Any] = {
        "low": psnr - 1,
        "high": psnr + 1,
        "n": n,
        "chance": 11.0,
        "leaks": "high",
        "against": "raw",
    }
    return Reading(name="psnr", value=psnr, by=name, **each)


def suite(made, defence=None, psnr=30, **members):
    found = tuple(part(name, *(given if isinstance(given, tuple) else (given,))) for name, given in members.items())
    return made.record(defence, psnr=psnr, attack=SUITE, label="strongest", knows=GRANTED, extra=found)


SIMPLE = {"attack": Analytic(), "label": "analytic"}


def test_a_simple_attack_that_beats_the_strong_one_is_flagged(made):
    (flag,) = cheap_beats_expensive([made.record(psnr=25), made.record(psnr=60, **SIMPLE)])
    assert "The simple attack analytic beats dlg2019 under no defence (batches of 1, before training)" in flag.sentence
    assert (flag.severity, len(flag.cells)) == ("doubt", 2)
    assert not cheap_beats_expensive([made.record(psnr=38), made.record(psnr=25, **SIMPLE)])
    assert not cheap_beats_expensive([made.record(psnr=25), made.record(psnr=26, **SIMPLE)])
    assert not cheap_beats_expensive([made.record(psnr=2), made.record(psnr=8, **SIMPLE)])
    assert not cheap_beats_expensive([made.record(psnr=25), made.record(psnr=60, batch_size=8, **SIMPLE)])


def test_what_was_learned_once_must_not_beat_a_search_and_may_beat_nothing_else(made):
    learned = {"attack": LEARNED, "label": "inverter"}
    (flag,) = cheap_beats_expensive([made.record(psnr=15), made.record(psnr=25, **learned)])
    assert flag.sentence.startswith("The learned attack inverter beats dlg2019")
    assert not cheap_beats_expensive([made.record(psnr=25), made.record(psnr=15, **learned)])
    (other,) = cheap_beats_expensive([made.record(psnr=15, **learned), made.record(psnr=60, **SIMPLE)])
    assert "analytic beats inverter" in other.sentence


def test_two_searches_do_not_compete(made):
    assert not cheap_beats_expensive([made.record(psnr=15), made.record(psnr=30, attack=POSTERIOR, label="posterior")])


def test_a_label_that_a_formula_reads_and_a_search_misses_is_flagged(made):
    search = {"psnr": 30, "labels": 0.75}
    (flag,) = cheap_beats_expensive(
        [made.record(**search), made.record(psnr=None, labels=0.0, attack=LabelReading(), label="label_reading")]
    )
    assert "The simple attack label_reading beats dlg2019" in flag.sentence
    read = {"psnr": None, "labels": 0.0, "attack": LabelReading(), "label": "label_reading"}
    assert not cheap_beats_expensive([made.record(psnr=30, labels=0.0), made.record(**read)])


def test_one_pair_of_attacks_is_one_flag_however_many_defences(made):
    defences = [TopK(share=share) for share in (0.5, 0.4, 0.3, 0.2, 0.1)]
    records = [made.record(d, psnr=psnr, **more) for d in defences for psnr, more in ((25, {}), (60, SIMPLE))]
    (flag,) = cheap_beats_expensive(records)
    assert "under top-k (share 0.5) (batches of 1, before training)" in flag.sentence
    assert "and 2 more. " in flag.sentence
    assert len(flag.cells) == 10


def test_a_single_layer_that_tells_little_is_no_failure(made):
    one_layer = {"attack": preset("dlg2019", layers=("body.0",)), "label": "one layer"}
    assert not cheap_beats_expensive([made.record(psnr=15, **one_layer), made.record(psnr=60, **SIMPLE)])


def test_of_a_suite_each_attack_competes_and_its_answer_does_not(made):
    (flag,) = cheap_beats_expensive([suite(made, psnr=40, analytic=40, posterior=20)])
    assert "The simple attack analytic (of strongest) beats posterior (of strongest)" in flag.sentence
    assert not cheap_beats_expensive([suite(made, psnr=20, analytic=20, posterior=40)])
    (place,) = entries_of([suite(made, analytic=40, posterior=20)]).values()
    assert [entry.name for entry in place] == ["analytic (of strongest)", "posterior (of strongest)"]


def test_an_attack_that_was_tried_only_where_cheap_ones_failed_is_not_compared(made):
    assert not cheap_beats_expensive([suite(made, analytic=(40, 8), posterior=(20, 3))])


def test_an_adaptive_attack_below_a_plain_one_is_flagged(made):
    adaptive = {"attack": POSTERIOR, "label": "posterior", "knows": GRANTED}
    (flag,) = adaptive_below_plain([made.record(TopK(), psnr=30), made.record(TopK(), psnr=20, **adaptive)])
    assert (
        "The attack posterior models the defence and gets less than dlg2019, which ignores it, under top-k"
        in flag.sentence
    )
    assert (flag.name, flag.severity, len(flag.cells)) == ("adaptive_below_plain", "doubt", 2)
    assert not adaptive_below_plain([made.record(TopK(), psnr=20), made.record(TopK(), psnr=30, **adaptive)])
    assert not adaptive_below_plain([made.record(TopK(), psnr=21), made.record(TopK(), psnr=20, **adaptive)])


def test_without_a_defence_nothing_adapts(made):
    adaptive = {"attack": POSTERIOR, "label": "posterior", "knows": GRANTED}
    assert not adaptive_below_plain([made.record(psnr=30), made.record(psnr=20, **adaptive)])


def test_an_adaptive_attack_is_compared_with_its_like_who_knows_no_more(made):
    adaptive = {"attack": POSTERIOR, "label": "posterior", "knows": GRANTED}
    weak = made.record(TopK(), psnr=20, **adaptive)
    assert not adaptive_below_plain([made.record(TopK(), psnr=60, **SIMPLE), weak])
    knowing = (Knows.LOCAL_STEPS, Knows.LABELS)
    assert not adaptive_below_plain([made.record(TopK(), psnr=30, knows=knowing), weak])
    (flag,) = adaptive_below_plain([suite(made, TopK(), posterior=20, dlg2019=30)])
    assert "posterior (of strongest) models the defence and gets less than dlg2019 (of strongest)" in flag.sentence


def test_a_suite_with_an_adaptive_member_is_adaptive(made):
    assert only_non_adaptive([suite(made, TopK(), dlg2019=30)])
    assert not only_non_adaptive([suite(made, TopK(), dlg2019=30, posterior=20)])


@pytest.mark.parametrize("field", ["iterations", "restarts"])
def test_more_budget_that_gets_less_is_flagged(made, field):
    short, long = ({"attack": preset("dlg2019", **{field: n}), "label": f"dlg {n}"} for n in (10, 400))
    (flag,) = more_budget_hurts([made.record(psnr=30, **short), made.record(psnr=20, **long)])
    assert (
        f"The attack dlg 400 has the settings of dlg 10 and a larger budget ({field} 400 for 10), and gets less"
        in flag.sentence
    )
    assert not more_budget_hurts([made.record(psnr=20, **short), made.record(psnr=30, **long)])
    assert not more_budget_hurts([made.record(psnr=21, **short), made.record(psnr=20, **long)])
    assert not more_budget_hurts([made.record(psnr=9, **short), made.record(psnr=2, **long)])
    other_place = {"defence": GaussianNoise(std=0.1), "psnr": 20}
    assert not more_budget_hurts([made.record(psnr=30, **short), made.record(**other_place, **long)])


def test_another_attack_has_another_budget(made):
    short = {"attack": preset("dlg2019", iterations=10), "label": "short"}
    for other in (preset("idlg2020", iterations=20), preset("dlg2019", iterations=5, restarts=9), GanAttack()):
        assert not more_budget_hurts([made.record(psnr=30, **short), made.record(psnr=20, attack=other, label="other")])
    knowing = {"attack": preset("dlg2019", iterations=20), "label": "long", "knows": (Knows.LABELS,)}
    assert not more_budget_hurts([made.record(psnr=30, **short), made.record(psnr=20, **knowing)])


def test_more_of_one_and_less_of_the_other_is_no_larger_budget(made):
    one = {"attack": preset("dlg2019", iterations=10, restarts=4), "label": "one"}
    other = {"attack": preset("dlg2019", iterations=40, restarts=1), "label": "other"}
    assert not more_budget_hurts([made.record(psnr=30, **one), made.record(psnr=20, **other)])
