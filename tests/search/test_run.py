from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Local
from leaktight.core.task import Batch
from leaktight.data import Digits, Npz
from leaktight.defences import Transformation
from leaktight.models import MLP
from leaktight.running import fingerprint
from leaktight.running.file_cache import Folder
from leaktight.running.processes import Processes
from leaktight.running.scheduler import Step
from leaktight.running.serial import Serial
from leaktight.running.store import lock_file
from leaktight.running.worker_pool import PoolResult
from leaktight.search import Result, Search, search, write_policy
from leaktight.search.candidates import candidate
from leaktight.search.material import material
from leaktight.search.score_task import ImageScores, ScoreTask
from leaktight.search.score_worker import ScoreWorker, load_scorer, search_setup
from leaktight.search.scorer import Scorer

SETTINGS = Search(data=Digits(), model=MLP(hidden=(8,)), images=16, candidates=24, epochs=2, threshold=2.0)


def lines(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (out.with_suffix(".search") / "journal.jsonl").read_text().splitlines()[1:]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    out = tmp_path_factory.mktemp("search") / "policy.toml"
    return out, search(SETTINGS.model_copy(update={"method": "random"}), out)


def test_the_exhaustive_choice_is_the_best_that_shares_no_function(found: tuple[Path, Result]) -> None:
    out, result = found
    held = lines(out)
    accuracy = {tuple(line["acts"]): line["scores"][0] for line in held if line["what"] == "accuracy"}
    privacy: dict[tuple[int, ...], list[float]] = {}
    for line in sorted((line for line in held if line["what"] == "privacy"), key=lambda line: line["start"]):
        privacy.setdefault(tuple(line["acts"]), []).extend(line["scores"])
    assert all(len(scores) == 16 for scores in privacy.values())
    passed = [acts for acts in accuracy if acts and accuracy[acts] >= 2.0 * accuracy[()]]
    assert set(privacy) == {(), *passed}
    ranked = sorted(passed, key=lambda acts: sum(privacy[acts]))
    second = next(acts for acts in ranked if not set(acts) & set(ranked[0]))
    assert [candidate(one.policy).acts for one in result.chosen] == [ranked[0], second]
    for one, acts in zip((*result.chosen, result.untransformed), (ranked[0], second, ()), strict=True):
        assert one.privacy == pytest.approx(sum(privacy[acts]) / 16)
        assert one.accuracy == accuracy[acts]
        assert one.interval[0] < one.privacy < one.interval[1]
    assert (result.candidates, result.distinct, result.passed) == (24, len(accuracy) - 1, len(passed))
    assert result.image_scores == 16 * len(passed)


def test_the_file_is_what_a_defence_and_a_person_read(found: tuple[Path, Result]) -> None:
    out, result = found
    held = tomllib.loads(out.read_text())
    assert held["policy"] == str(result.policy) == "+".join(one.policy for one in result.chosen)
    assert held["search"]["data"] == "digits"
    assert held["search"]["library"] == list(range(50))
    assert [one["privacy_score"] for one in held["chosen"]] == [one.privacy for one in result.chosen]
    assert held["untransformed"]["accuracy_score"] == result.untransformed.accuracy
    defence = Transformation(file=str(out))
    assert defence.policy == result.policy
    batch = Batch(torch.rand(4, 1, 8, 8), torch.arange(4))
    assert not torch.equal(defence.on_batch(batch, Local("client-0", 0)).inputs, batch.inputs)


def test_the_same_again_asks_nothing_and_writes_the_same_bytes(found: tuple[Path, Result], tmp_path: Path) -> None:
    out, result = found
    journal, policy = (out.with_suffix(".search") / "journal.jsonl").read_bytes(), out.read_bytes()
    told: list[Step] = []
    assert search(result.search, out, progress=told.append) == result
    assert told == []
    assert (out.with_suffix(".search") / "journal.jsonl").read_bytes() == journal
    assert out.read_bytes() == policy
    assert search(result.search, tmp_path / "p.toml") == result
    assert (tmp_path / "p.toml").read_bytes() == policy


def test_a_race_uses_what_is_there_and_chooses_about_as_well(found: tuple[Path, Result], tmp_path: Path) -> None:
    out, result = found
    raced = search(SETTINGS, tmp_path / "policy.toml")
    assert raced.image_scores < result.image_scores
    assert raced.privacy <= result.privacy * 1.01
    before = len(lines(out))
    again = search(SETTINGS, out)
    assert (again.policy, len(lines(out))) == (raced.policy, before)
    search(result.search, out)


def test_no_score_is_computed_twice(found: tuple[Path, Result]) -> None:
    keys = [(line["what"], line["start"], line["stop"], tuple(line["acts"])) for line in lines(found[0])]
    assert len(set(keys)) == len(keys)
    assert {acts for *_, acts in keys} == {
        candidate("-".join(map(str, acts))).acts if acts else () for *_, acts in keys
    }


@pytest.mark.long
def test_two_workers_find_the_same_bytes(tmp_path: Path) -> None:
    few = SETTINGS.model_copy(update={"candidates": 6})
    one, two = (search(few, tmp_path / f"{workers}.toml", workers) for workers in (1, 2))
    assert one == two
    assert (tmp_path / "1.toml").read_bytes() == (tmp_path / "2.toml").read_bytes()
    assert sorted(map(str, lines(tmp_path / "1.toml"))) == sorted(map(str, lines(tmp_path / "2.toml")))


@pytest.mark.long
def test_a_worker_that_cannot_start_is_one_sentence(tmp_path: Path, found: tuple[Path, Result]) -> None:
    out, _ = found
    torn = tmp_path / "model.safetensors"
    torn.write_bytes((out.with_suffix(".search") / "model.safetensors").read_bytes()[:-10])
    with (
        pytest.raises(LeaktightError, match=r"A worker process could not start \(exit code 1\)."),
        Processes(1, search_setup(SETTINGS, torn)) as pool,
    ):
        pool.submit(ScoreTask("accuracy", 0, 16, ()))
        pool.next(lambda *_: None)


class Deadly(Serial[ScoreTask, ImageScores]):
    """A pool whose workers die of every task but the first few."""

    left = 3

    def next(self, advance: Any) -> PoolResult[ScoreTask, ImageScores]:
        result = super().next(advance)
        self.left -= 1
        return result if self.left >= 0 else PoolResult(result.task, lost="The worker process died 2 times.")


def test_scores_are_kept_if_the_workers_of_a_task_die(tmp_path: Path) -> None:
    with pytest.raises(LeaktightError, match=r"^The worker process died 2 times. Finished scores are kept.$"):
        search(SETTINGS, tmp_path / "policy.toml", workers=Deadly)
    assert len(lines(tmp_path / "policy.toml")) == 3


def test_what_goes_wrong_in_a_worker_is_said_here() -> None:
    def fail(task: ScoreTask) -> ImageScores:
        raise LeaktightError("The images are too large.")

    task = ScoreTask("accuracy", 0, 16, ())
    assert ScoreTask.from_bytes(task.encode()) == task
    answers = [
        ScoreWorker(SimpleNamespace(score=score)).answer(task.encode()) for score in (fail, lambda task: (0.1, -2.5))
    ]
    with pytest.raises(LeaktightError, match=r"^The images are too large.$"):
        task.decode(answers[0])
    assert task.decode(answers[1]) == (0.1, -2.5)


def test_progress_says_how_far_and_what_at_most_is_left(tmp_path: Path) -> None:
    told: list[Step] = []
    search(SETTINGS.model_copy(update={"candidates": 8}), tmp_path / "policy.toml", progress=told.append)
    assert [step.text for step in told[:2]] == ["training a little"] * 2
    scoring = told[2:]
    assert all(step.done <= step.total for step in scoring)
    assert [step.done for step in scoring] == list(range(1, len(scoring) + 1))
    assert scoring[-1].done == scoring[-1].total
    assert any(step.text.startswith("accuracy of") for step in scoring)
    assert scoring[-1].text.endswith("images 9 to 16 of 16")
    later: list[Step] = []
    search(SETTINGS.model_copy(update={"candidates": 12}), tmp_path / "policy.toml", progress=later.append)
    assert later[0].text.endswith(f"({len(scoring)} scores kept)")


def test_what_decides_scores_begins_a_new_journal(tmp_path: Path) -> None:
    few = SETTINGS.model_copy(update={"candidates": 4, "policies": 1})
    out = tmp_path / "policy.toml"
    search(few, out)
    before = (tmp_path / "policy.search" / "journal.jsonl").read_bytes()
    search(few.model_copy(update={"epochs": 3}), out)
    after = (tmp_path / "policy.search" / "journal.jsonl").read_bytes()
    assert before.splitlines()[0] != after.splitlines()[0]
    # A privacy score is of the model that was trained a little, and none of the other training is left.
    privacy = [{line for line in held.splitlines() if b'"privacy"' in line} for held in (before, after)]
    assert privacy[0]
    assert privacy[1]
    assert privacy[0].isdisjoint(privacy[1])


def test_too_few_candidates_are_drawn_again_as_the_algorithm_says(tmp_path: Path) -> None:
    result = search(SETTINGS.model_copy(update={"candidates": 1, "threshold": 1e6}), tmp_path / "policy.toml")
    assert len(result.chosen) == 2
    assert result.candidates > 1


def test_if_no_choice_is_possible_one_sentence_says_why(tmp_path: Path) -> None:
    alone = SETTINGS.model_copy(update={"library": (3,), "candidates": 3})
    with pytest.raises(
        InvalidValue,
        match=r"A search needs 2 policies that share no function .* fewer in 30 draws; raise the threshold",
    ):
        search(alone, tmp_path / "policy.toml")
    assert not (tmp_path / "policy.toml").exists()


def test_wrong_places_and_workers_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"The `workers` of a search must be at least 1. Got 0 instead."):
        search(SETTINGS, tmp_path / "policy.toml", workers=0)
    with pytest.raises(InvalidValue, match="it is a folder"):
        search(SETTINGS, tmp_path)
    with pytest.raises(
        InvalidValue, match=r"The file for the policy must not end in `.search`, .* Got `.*mine.search` instead."
    ):
        search(SETTINGS, tmp_path / "mine.search")


def test_a_second_search_beside_a_running_one_is_refused_and_changes_nothing(
    tmp_path: Path, found: tuple[Path, Result]
) -> None:
    folder = tmp_path / "policy.search"
    shutil.copytree(found[0].with_suffix(".search"), folder)
    before = (folder / "journal.jsonl").read_bytes()
    with (
        contextlib.closing(lock_file(folder / "search.lock")),
        pytest.raises(LeaktightError, match="Another process is writing to"),
    ):
        search(SETTINGS, tmp_path / "policy.toml")
    assert (folder / "journal.jsonl").read_bytes() == before
    assert search(SETTINGS.model_copy(update={"method": "random"}), tmp_path / "policy.toml") == found[1]


@pytest.mark.parametrize(
    "damage", [lambda whole: whole[:-4], lambda whole: whole[:-4] + bytes([whole[-4] ^ 1]) + whole[-3:]]
)
def test_a_damaged_model_file_is_named_and_made_again(
    tmp_path: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    few = SETTINGS.model_copy(update={"candidates": 3, "policies": 1, "threshold": 1e6})
    first = search(few, tmp_path / "policy.toml")
    model = tmp_path / "policy.search" / "model.safetensors"
    whole = model.read_bytes()
    assert caplog.text == ""
    model.write_bytes(damage(whole))
    assert search(few, tmp_path / "policy.toml") == first
    assert model.read_bytes() == whole
    assert [said.message for said in caplog.records] == [f"The model `{model}` is damaged and is computed again."]


def test_scores_of_other_code_are_computed_again_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    few = SETTINGS.model_copy(update={"candidates": 3, "policies": 1, "threshold": 1e6})
    first = search(few, tmp_path / "policy.toml")
    scored = len(lines(tmp_path / "policy.toml"))
    plain = fingerprint.trace

    def edited(*asked: Any) -> dict[str, str]:
        files = plain(*asked)
        assert {"leaktight/probes/privacy_score.py", "leaktight/transforms/library.py"} <= files.keys()
        return {**files, "leaktight/probes/privacy_score.py": "edited"}

    monkeypatch.setattr(fingerprint, "trace", edited)
    told: list[Step] = []
    assert search(few, tmp_path / "policy.toml", progress=told.append) == first
    what = "leaktight/probes/privacy_score.py"
    assert [said.message for said in caplog.records] == [f"{what} changed, so {scored} scores are computed again."]
    assert told[0].text == "training a little"
    assert len(lines(tmp_path / "policy.toml")) == scored
    caplog.clear()
    assert search(few, tmp_path / "policy.toml") == first
    assert caplog.text == ""


def test_the_scorer_of_a_file_has_its_parameters(found: tuple[Path, Result]) -> None:
    scorer = load_scorer(SETTINGS, Folder(found[0].with_suffix(".search")), "model.safetensors")
    made = material(SETTINGS)
    assert isinstance(scorer, Scorer)
    assert scorer.trained.keys() == made.task.model.tensors().keys()
    assert not torch.equal(scorer.trained["head.weight"], made.task.model.tensors()["head.weight"])


def test_words_in_settings_survive_the_file(tmp_path: Path, found: tuple[Path, Result]) -> None:
    _, result = found
    odd = dataclasses.replace(result.untransformed, interval=(None, None))
    write_policy(tmp_path / "policy.toml", dataclasses.replace(result, untransformed=odd))
    assert "privacy_low" not in tomllib.loads((tmp_path / "policy.toml").read_text())["untransformed"]
    for name, kept in (('\U0001f4f7 \xe9 \x7f \x00 \\ "', None), ("\udcff", "?")):
        named = result.search.model_copy(update={"data": Npz(path=f"{name}.npz")})
        write_policy(tmp_path / "policy.toml", dataclasses.replace(result, search=named))
        told = tomllib.loads((tmp_path / "policy.toml").read_text(encoding="utf-8"))["search"]["data"]
        assert told == str(named.data).replace(name, kept or name)
