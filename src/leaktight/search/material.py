"""What a search works with: the images to score, where an attacker starts, and the model that was trained a little."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream, uniform_like
from leaktight.core.scenario import Progress
from leaktight.core.task import Batch, Task
from leaktight.data.source import Data
from leaktight.learning.gradient import gradient
from leaktight.learning.schedule import Shuffled
from leaktight.search.settings import Search
from leaktight.transforms.images import require_images

ATTACKED = 100
"""The paper attacks the first test images, and chooses no policy by them; audits here attack training images."""


@dataclasses.dataclass(frozen=True)
class Material:
    """What the scores are taken on.

    Args:
        task: the public task with its untrained model.
        examples: the images to score, with their labels.
        noise: where an attacker starts, one for each image.
        signs: for each place in a policy and each image, 1 or -1: the same for every policy, so that policies compare
            image by image.
    """

    task: Task
    examples: Batch
    noise: Tensor
    signs: Tensor


def material(search: Search) -> Material:
    """Return what a search scores on.

    Images come from the test part, which is public, without its first 100, which the paper attacks; if that leaves too
    few, from the training examples that the little training does not use.

    Raises:
        InvalidValue: there are too few images, or all are of one class, or pixels are out of range.
        Refusal: the data are not images.
    """
    data = search.data.load()
    require_images(data.test.inputs[:1])
    task = search.scenario().task(data, search.seed)
    examples = _scored_examples(search, data).to(task.device)
    require_images(examples.inputs)
    # Row by row: a search for longer policies has the same signs in the first places, and keeps its scores.
    rng = stream(search.seed, "search", "signs")
    signs = torch.stack([2 * torch.randint(2, (search.images,), generator=rng) - 1 for _ in range(search.functions)])
    return Material(task, examples, uniform_like(examples.inputs, stream(search.seed, "search", "noise")), signs)


def semi_train(search: Search, task: Task, progress: Progress | None = None) -> dict[str, Tensor]:
    """Return a model's parameters, by its names, after some epochs on a share of the training part.

    Args:
        search: the settings; `share`, `epochs`, `batch_size` and `optimiser` count.
        task: the task with its untrained model, which stays as it is.
        progress: called after each epoch.
    """
    data = search.data.load()
    part = data.train.take(_order(search, data)[: _training_size(search, data)]).to(task.device)
    leaves = {name: tensor.clone().requires_grad_(True) for name, tensor in task.model.tensors().items()}
    steps = search.optimiser.over(leaves.values())
    size = min(search.batch_size, len(part))
    for epoch in range(search.epochs):
        for step in range(epoch * (len(part) // size), (epoch + 1) * (len(part) // size)):
            positions = Shuffled().positions(part, epoch, step, size, search.seed, "search")
            found = gradient(task, leaves, part.take(positions.to(part.labels.device))).tensors
            for name, leaf in leaves.items():
                leaf.grad = found[name]
            steps.step()
        if progress is not None:
            progress(epoch + 1, search.epochs)
    if not all(bool(torch.isfinite(leaf).all()) for leaf in leaves.values()):
        raise InvalidValue(
            "The little training of the search diverged. Choose an `optimiser` with a smaller learning rate."
        )
    return {name: leaf.detach() for name, leaf in leaves.items()}


def _scored_examples(search: Search, data: Data) -> Batch:
    rest = len(data.test) - ATTACKED
    if rest >= search.images:
        order = torch.randperm(rest, generator=stream(search.seed, "search", "images"))[: search.images]
        found = data.test.take(ATTACKED + order)
    else:
        unused = _order(search, data)[_training_size(search, data) :]
        if len(unused) < search.images:
            raise InvalidValue(
                f"The `images` of a search must be at most {max(rest, len(unused))}: test images after the first "
                f"{ATTACKED}, or training images beside the share that is trained on. Got {search.images} instead."
            )
        found = data.train.take(unused[: search.images])
    if len(torch.unique(found.labels)) < 2:
        raise InvalidValue(
            f"A search needs images of at least 2 classes. All {search.images} that were drawn are of one."
        )
    return found


def _order(search: Search, data: Data) -> Tensor:
    return torch.randperm(len(data.train), generator=stream(search.seed, "search", "training"))


def _training_size(search: Search, data: Data) -> int:
    return max(1, round(search.share * len(data.train)))
