from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leaktight.papers import Order, Records, Tables
from leaktight.papers.layer_leakage import FLAGS, INTERVALS, PAPER
from leaktight.papers.layer_leakage.inversion import SINGLE
from leaktight.papers.layer_leakage.layers import SPREAD
from leaktight.papers.layer_leakage.scales import Study, study_of
from leaktight.papers.paper import Plans
from leaktight.papers.row import CLAIM, rows_where


def notes_of(study: Study) -> list[str]:
    return PAPER.remarks(Order(), study)


def test_each_claim_is_checked_once(tables: Tables) -> None:
    names = [check.name for check in PAPER.checks(tables)]
    # Nine correlations; places of 4 layers, three times, 3 properties and 10 tasks; 2 classifiers; 12 of information; 3 of
    # inversion. Ours: sealing on 3 networks, twice; 4 counts with 3 strengths of noise, or sealed; 2 with matched labels;
    # 2 seats, one of them also active, 2 protocols, 2 numbers of participants.
    assert len(set(names)) == len(names) == 9 + 25 + 2 + 12 + 3 + 6 + 16 + 2 + 12


def test_each_claim_of_the_page_is_judged_by_a_check(tables: Tables) -> None:
    checks = PAPER.checks(tables)
    assert [claim.claim for claim in PAPER.summary.claims if not claim.among(checks)] == []


def test_claims_about_layers_are_not_judged_by_tables_of_our_own(tables: Tables) -> None:
    judged = [check.name for claim in PAPER.summary.claims for check in claim.among(PAPER.checks(tables))]
    assert len(set(judged)) == len(judged)
    assert not [
        name for name in judged if name.startswith(("Property AUC(noise", "Property AUC(sealed", "Property AUC(active"))
    ]


def test_where_the_attack_succeeds_is_judged_on_both_networks_over_all_seeds(tables: Tables) -> None:
    [claim] = [claim for claim in PAPER.summary.claims if claim.checks.startswith("Property AUC(best")]
    judged = [check.name.partition(", LFW, ")[2] for check in claim.among(PAPER.checks(tables))]
    assert judged == [
        f"{subject}, {network}"
        for subject in ("gender, race: Black", "glasses, gender: Male")
        for network in ("AlexNet", "VGG11Net")
    ]


def test_gaps_never_hold(tables: Tables, answered: Callable[..., Records], setup: Any) -> None:
    checks = PAPER.checks(PAPER.tables(setup, answered(lambda cell: True)))
    assert [check.name for check in checks] == [check.name for check in PAPER.checks(tables)]
    assert not any(check.holds for check in checks)
    assert all(check.value is None for check in checks)


def test_what_is_always_so_is_always_told(study: Study, sets: str) -> None:
    for one in (study, study_of(Order()), study_of(Order(scale="paper", data=sets))):
        assert {INTERVALS, SPREAD, SINGLE} <= set(notes_of(one))


def test_faces_have_flags_and_a_size(study: Study, sets: str) -> None:
    told = notes_of(study)
    assert FLAGS in told
    assert any("brought to 32 pixels a side; the paper's are 62x47" in note for note in told)
    whole = notes_of(study_of(Order(scale="paper", data=sets)))
    assert FLAGS in whole
    assert not any("62x47" in note for note in whole)
    assert FLAGS not in notes_of(study_of(Order()))


def test_what_differs_from_the_paper_s_attack_is_told(study: Study) -> None:
    told = " ".join(notes_of(study))
    assert "a share of 0.5 of a batch with the property has it" in told
    assert "The attacker sits at the server" in told
    assert "compared on AlexNet alone" in told


def test_the_full_experiment_has_the_paper_s_attack(sets: str) -> None:
    told = " ".join(notes_of(study_of(Order(scale="paper", data=sets))))
    assert "The attacker sits" not in told
    assert "alone." not in told


def test_each_part_has_a_plan_in_a_folder_of_its_own(plans: Plans) -> None:
    subjects = ("gender-race-black", "glasses-gender-male")
    assert list(plans) == [
        *(f"lfw-{subject}-{part}" for part in ("leak", "model") for subject in subjects),
        "lfw-gender-race-black-guarded",
        *(f"lfw-{subject}-{part}" for part in ("mixed", "matched") for subject in subjects),
        *(f"lfw-gender-race-black-clients-{seat}" for seat in ("server", "client-1")),
        *(f"lfw-{subject}-compared" for subject in subjects),
        "lfw-glasses-age-senior-leak",
        "lfw-glasses-hair-black-leak",
        *(f"lfw-{task}-gender-male-model" for task in ("race", "hair", "age")),
        "inversion",
    ]
    assert all(name == name.lower() and " " not in name and ":" not in name for name in plans)


def test_everything_is_repeated_with_three_seeds(plans: Plans) -> None:
    assert {plan.grid.seeds for plan in plans.values()} == {(5, 6, 7)}


def test_no_two_plans_share_a_folder_at_any_scale(sets: str) -> None:
    for scale in ("smoke", "small", "paper"):
        order = Order.model_validate({"scale": scale, "data": sets})
        study = study_of(order)
        wanted = len(study.subjects) * 5 + 3 + len(study.properties) + len(study.tasks) + 1
        assert len(PAPER.plans(study)) == wanted


def test_figures_are_told_in_sentences_with_their_source() -> None:
    for name, rows in PAPER.published_tables().items():
        if name != "correlation":
            assert rows
            for row in rows:
                assert str(row[CLAIM]).endswith(".")
                assert row["source"]


def test_every_table_has_its_keys_once(tables: Tables) -> None:
    assert list(tables) == list(PAPER.keys)
    # These are ours, so that nothing published stands beside them.
    ours = {"sealing", "guard", "mixed", "matched", "clients"}
    assert [name for name in tables if name not in ours] == list(PAPER.published_tables())
    for name, rows in tables.items():
        found = [tuple(row[key] for key in PAPER.keys[name]) for row in rows]
        assert len(set(found)) == len(found) > 0
        assert len({tuple(row) for row in rows}) == 1


def test_what_failed_leaves_gaps_and_no_other_numbers(
    tables: Tables, answered: Callable[..., Records], setup: Any
) -> None:
    nothing = PAPER.tables(setup, answered(lambda cell: True))
    assert {name: len(rows) for name, rows in nothing.items()} == {name: len(rows) for name, rows in tables.items()}
    assert all(row["property_auc"] is None and row["accuracy"] is None for row in nothing["layers"])
    assert {(row["r"], row["n"]) for row in nothing["correlation"]} == {(None, 0)}
    some = PAPER.tables(setup, answered(lambda cell: cell.label == "sensitivity"))
    assert rows_where(some["correlation"], network="All", measure="sensitivity")[0]["r"] is None
    assert rows_where(some["correlation"], network="All", measure="V-information")[0]["n"] == 50
