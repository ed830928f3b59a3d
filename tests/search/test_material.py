from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import stream
from leaktight.data import Csv, Digits, Npz, Photos
from leaktight.learning import Sgd
from leaktight.learning.evaluate import utility
from leaktight.models import MLP
from leaktight.search.material import ATTACKED, material, semi_train
from leaktight.search.settings import Search


def settings(**changes: object) -> Search:
    return Search.model_validate({"data": Digits(), "model": MLP(hidden=(8,)), "images": 20, "epochs": 1, **changes})


def places(images: torch.Tensor, among: torch.Tensor) -> set[int]:
    """Where images are found, by their pixels."""
    rows = {one.numpy().tobytes(): place for place, one in enumerate(among)}
    return {rows[one.numpy().tobytes()] for one in images if one.numpy().tobytes() in rows}


def test_images_are_test_images_that_no_attack_is_measured_on() -> None:
    data = Digits().load()
    found = places(material(settings(images=40)).examples.inputs, data.test.inputs)
    assert len(found) == 40
    assert min(found) >= ATTACKED


def test_where_the_test_part_is_small_they_are_training_images_that_are_not_trained_on() -> None:
    data = Photos().load()
    assert len(data.test) < ATTACKED
    search = settings(data=Photos(), images=30)
    found = material(search).examples.inputs
    held = places(found, data.train.inputs)
    assert len(held) == 30
    trained = torch.randperm(len(data.train), generator=stream(search.seed, "search", "training"))[
        : len(data.train) // 10
    ]
    assert len(trained) == 86
    assert held.isdisjoint(trained.tolist())
    # With a share of nearly all there is nothing left to score on.
    with pytest.raises(InvalidValue, match=r"The `images` of a search must be at most 9: .* Got 30 instead"):
        material(settings(data=Photos(), images=30, share=0.99))


def test_batches_of_the_accuracy_score_are_disjoint_where_there_are_enough_images() -> None:
    enough, few = (material(settings(images=20, batches=batches)) for batches in (10, 30))
    assert enough.batches.shape == (10, 20)
    assert len(enough.batches.unique()) == len(enough.pool) == 200
    assert len(few.pool) == len(Digits().load().test) - ATTACKED
    for made in (enough, few):
        assert torch.equal(made.batches[0], torch.arange(20))
        assert all(len(batch.unique()) == 20 for batch in made.batches)
        assert torch.equal(made.signs[:, :20], enough.signs[:, :20])
        assert torch.equal(made.examples.inputs, enough.examples.inputs)


def test_brief_training_is_tested_on_training_images_that_it_does_not_see() -> None:
    data, made = Digits().load(), material(settings())
    learned, held = (places(batch.inputs, data.train.inputs) for batch in (made.training, made.held_out))
    assert len(made.held_out) == round(0.2 * len(data.train))
    assert len(made.training) + len(made.held_out) == len(data.train)
    assert learned
    assert learned.isdisjoint(held)


def test_the_seed_decides_images_noise_and_signs() -> None:
    one, again, other = (material(settings(seed=seed)) for seed in (0, 0, 1))
    for name in ("noise", "signs"):
        assert torch.equal(getattr(one, name), getattr(again, name))
        assert not torch.equal(getattr(one, name), getattr(other, name))
    assert not torch.equal(one.examples.inputs, other.examples.inputs)
    assert one.noise.shape == one.examples.inputs.shape
    assert 0 <= one.noise.min() < 0.05 < 0.95 < one.noise.max() <= 1


def test_the_little_training_teaches_and_leaves_the_untrained_model_alone() -> None:
    search = settings(epochs=20, share=0.5)
    made = material(search)
    before = {name: tensor.clone() for name, tensor in made.task.model.tensors().items()}
    told: list[tuple[int, int]] = []
    trained = semi_train(search, made.task, lambda done, total: told.append((done, total)))
    assert told == [(epoch, 20) for epoch in range(1, 21)]
    assert all(torch.equal(tensor, before[name]) for name, tensor in made.task.model.tensors().items())
    test = Digits().load().test
    assert utility(made.task, trained, test)[0].value > utility(made.task, before, test)[0].value + 0.4
    again = semi_train(search, made.task)
    assert all(torch.equal(trained[name], again[name]) for name in trained)


def test_no_epochs_leave_the_model_untrained() -> None:
    search = settings(epochs=0)
    task = material(search).task
    found = semi_train(search, task)
    assert all(torch.equal(found[name], tensor) for name, tensor in task.model.tensors().items())


def test_a_share_smaller_than_a_batch_is_trained_on() -> None:
    search = settings(share=0.005, epochs=2)
    task = material(search).task
    assert not torch.equal(semi_train(search, task)["head.bias"], task.model.tensors()["head.bias"])


def test_a_training_that_diverges_is_one_sentence() -> None:
    search = settings(optimiser=Sgd(learning_rate=1e30), epochs=3)
    with pytest.raises(InvalidValue, match=r"The little training of the search diverged. Choose an `optimiser`"):
        semi_train(search, material(search).task)


def test_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b,label\n" + "\n".join(f"{n},{n * n},{n % 2}" for n in range(200)) + "\n")
    with pytest.raises(Refusal, match="A transformation needs images of shape"):
        material(settings(data=Csv(path=str(tmp_path / "rows.csv"), label="label")))


def test_images_of_one_class_are_one_sentence(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.random((400, 8, 8, 1), dtype=np.float32)
    np.savez(tmp_path / "one.npz", x=images, y=np.zeros(400, dtype=np.int64))
    with pytest.raises(InvalidValue, match="at least 2 classes"):
        material(settings(data=Npz(path=str(tmp_path / "one.npz"))))
    np.savez(tmp_path / "named.npz", x=images, y=np.zeros(400, dtype=np.int64))
    with pytest.raises(
        InvalidValue, match=r"A search needs images of at least 2 classes. All 20 that were drawn are of one."
    ):
        material(settings(data=Npz(path=str(tmp_path / "named.npz"), classes=2)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"functions": 0}, "The `functions` of Search must be at least 1. Got 0 instead."),
        ({"functions": 1000}, "The `functions` of Search must be at most 6. Got 1000 instead."),
        ({"library": (3, 50)}, "The `library` of Search must be made of indices in 0..49. Got 50 instead."),
        ({"library": (-1,)}, "Got -1 instead."),
        (
            {"library": (28, 39)},
            "The `library` of Search must hold a function that changes an image. Got none instead.",
        ),
        ({"library": ()}, "must hold a function"),
        ({"candidates": 0}, "The `candidates` of Search must be at least 1"),
        ({"policies": 0}, "The `policies` of Search must be at least 1"),
        ({"threshold": 0.5}, "The `threshold` of Search must be at least 1"),
        ({"images": 2}, "The `images` of Search must be at least 8"),
        ({"method": "hope"}, "The `method` of Search must be one of 'racing' or 'random'"),
        ({"share": 0}, "The `share` of Search must be above 0"),
    ],
)
def test_absurd_settings_are_one_sentence(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        settings(**change)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_go_to_json_and_back() -> None:
    search = settings(library=(3, 1), method="random")
    assert Search.model_validate(search.to_dict()) == search
