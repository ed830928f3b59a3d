from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

from leaktight.core.random import normal_like, stream
from leaktight.data import Digits, Photos
from leaktight.models import MLP
from leaktight.probes.accuracy_score import accuracy_score
from leaktight.probes.privacy_score import privacy_scores
from leaktight.search.candidates import candidate
from leaktight.search.material import Material, material
from leaktight.search.score_task import ScoreTask, blocks
from leaktight.search.scorer import Scorer
from leaktight.search.settings import Search
from leaktight.transforms.library import LIBRARY
from leaktight.transforms.operation import OPERATIONS

SEARCH = Search(data=Photos(size=12), model=MLP(hidden=(4,)), images=12, batches=2)


@pytest.fixture(scope="module")
def made() -> Material:
    return material(SEARCH)


@pytest.fixture
def scorer(made: Material) -> Scorer:
    rng = stream(0, "training")
    trained = {name: tensor + 0.1 * normal_like(tensor, rng) for name, tensor in made.task.model.tensors().items()}
    return Scorer(SEARCH, made, trained)


def by_pillow(made: Material, text: str) -> np.ndarray:
    """Each function on one image at a time."""
    found = []
    for place, pixels in enumerate(made.pool.inputs.mul(255).round().byte().permute(0, 2, 3, 1).numpy()):
        image = Image.fromarray(pixels)
        for position, index in enumerate(candidate(text).acts):
            function = LIBRARY[index]
            image = OPERATIONS[function.operation].apply(image, function.value, int(made.signs[position, place]))
        found.append(np.asarray(image).transpose(2, 0, 1))
    return np.stack(found)


@pytest.mark.parametrize("text", ["3-1-7", "43-18-18", "2-9-6", "15-14-34", "11-37-31", "28-0-39"])
def test_images_are_what_pillow_makes_of_each_one(scorer: Scorer, made: Material, text: str) -> None:
    assert np.array_equal(scorer.images(candidate(text).acts), by_pillow(made, text))


def test_prefixes_are_shared(scorer: Scorer) -> None:
    scorer.images((3, 1, 7))
    assert scorer.applied == 3
    scorer.images((3, 1, 4))
    assert scorer.applied == 4
    scorer.images((3, 1))
    scorer.images((3, 1, 7))
    assert scorer.applied == 4
    scorer.images((1, 3))
    assert scorer.applied == 6


def test_with_little_memory_the_images_are_the_same(made: Material, scorer: Scorer) -> None:
    small = Scorer(SEARCH, made, scorer.trained, memory=0)
    for acts in ((3, 1, 7), (3, 1, 4), (3, 1, 7)):
        assert np.array_equal(small.images(acts), scorer.images(acts))
    assert (small.applied, scorer.applied) == (9, 4)


def test_a_policys_images_depend_on_seed_policy_and_image_alone(made: Material, scorer: Scorer) -> None:
    other = Scorer(SEARCH, made, scorer.trained)
    other.images((7, 2, 3))
    assert np.array_equal(other.images((3, 1, 7)), scorer.images((3, 1, 7)))
    again = material(SEARCH)
    assert torch.equal(again.signs, made.signs)
    assert torch.equal(again.noise, made.noise)
    longer = material(SEARCH.model_copy(update={"functions": 6}))
    assert torch.equal(longer.signs[:3], made.signs)
    assert longer.signs.shape == (6, 24)
    assert set(made.signs.flatten().tolist()) == {1, -1}


def test_scores_are_those_of_the_probes_functions(scorer: Scorer, made: Material) -> None:
    task = ScoreTask("privacy", 4, 9, (3, 1))
    images = torch.from_numpy(by_pillow(made, "3-1")).float() / 255
    wanted = privacy_scores(made.task, scorer.trained, images[4:9], made.examples.labels[4:9], made.noise[4:9])
    assert len(made.examples) == 12
    assert scorer.score(task) == pytest.approx(wanted.tolist(), abs=1e-6)
    batches = scorer.score(ScoreTask("accuracy", 0, 12, (3, 1)))
    # The model of the accuracy score is untrained.
    plain = [accuracy_score(made.task, made.task.model.tensors(), part) for part in (images[:12], images[12:])]
    assert batches == pytest.approx(plain)
    assert batches[0] != pytest.approx(accuracy_score(made.task, scorer.trained, images[:12]))


def test_images_that_come_out_the_same_are_scored_once(scorer: Scorer) -> None:
    once = scorer.score(ScoreTask("privacy", 0, 4, (11,)))
    assert scorer.scored == 1
    # Dropping bits twice is dropping them once, and inverting twice is nothing at all.
    assert scorer.score(ScoreTask("privacy", 0, 4, (11, 11))) == once
    assert scorer.scored == 1
    plain = scorer.score(ScoreTask("privacy", 0, 4, ()))
    assert scorer.score(ScoreTask("privacy", 0, 4, (0, 0))) == plain != once
    assert scorer.scored == 2
    # Other images, or another question, are asked anew.
    scorer.score(ScoreTask("privacy", 4, 8, (11,)))
    scorer.score(ScoreTask("accuracy", 0, 4, (11,)))
    assert scorer.scored == 4


def test_whatever_was_asked_before_the_answer_has_the_same_bits(made: Material, scorer: Scorer) -> None:
    fresh = Scorer(SEARCH, made, scorer.trained)
    for acts in ((3,), (3, 1), (0, 0)):
        scorer.score(ScoreTask("privacy", 0, 8, acts))
    assert scorer.score(ScoreTask("privacy", 8, 12, (3, 1))) == fresh.score(ScoreTask("privacy", 8, 12, (3, 1)))


def test_settings_of_the_score_count(made: Material, scorer: Scorer) -> None:
    task = ScoreTask("privacy", 0, 4, (3,))
    for change in ({"similarity": "per_tensor"}, {"blends": 5}):
        other = Scorer(SEARCH.model_copy(update=change), made, scorer.trained)
        assert other.score(task) != pytest.approx(scorer.score(task), abs=1e-6)


def test_blocks_cover_all_images_once_and_are_whole_groups() -> None:
    for images in (8, 9, 16, 63, 64, 100, 1000):
        parts = blocks(images)
        assert [place for start, stop in parts for place in range(start, stop)] == list(range(images))
        # An image's group of four decides how its sums are rounded, so that no group is cut.
        assert all(start % 4 == 0 for start, _ in parts)


def test_grey_images(made: Material) -> None:
    search = Search(data=Digits(), model=MLP(hidden=(4,)), images=8, batches=1)
    own = material(search)
    scorer = Scorer(search, own, own.task.model.tensors())
    assert scorer.images((3, 1, 7)).shape == (8, 1, 8, 8)
    assert len(scorer.score(ScoreTask("privacy", 0, 8, (3, 1, 7)))) == 8
    assert dataclasses.astuple(ScoreTask("privacy", 0, 8, (3,))) == ("privacy", 0, 8, (3,))
