"""What a search works with: the images to score, where an attacker starts, and the model that was trained a little."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import Stream, stream, uniform_like
from leaktight.core.scenario import Progress
from leaktight.core.task import Batch, Task
from leaktight.data.source import Data
from leaktight.learning.gradient import gradient
from leaktight.learning.schedule import Shuffled
from leaktight.search.settings import Search
from leaktight.transforms.images import require_images

MOST_HELD_OUT, HELD_OUT = 1000, 0.2
"""On how many training images brief training runs are tested at most, and on which share."""
ATTACKED = 100
"""The paper attacks the first test images, and chooses no policy by them; audits here attack training images."""


@dataclasses.dataclass(frozen=True)
class Material:
    """What the scores are taken on.

    Args:
        task: the public task with its untrained model.
        pool: the images to score, with their labels; privacy is scored on the first ones.
        noise: where an attacker starts, one for each image of the privacy score.
        signs: for each place in a policy and each image, 1 or -1: the same for every policy, so that policies compare
            image by image.
        batches: the positions in the pool of the images of each batch of the accuracy score.
        training: what brief training runs learn from.
        held_out: what their accuracy is measured on; neither is test data.
    """

    task: Task
    pool: Batch
    noise: Tensor
    signs: Tensor
    batches: Tensor
    training: Batch
    held_out: Batch

    @property
    def examples(self) -> Batch:
        """The images that privacy is scored on, with their labels."""
        return self.pool.take(torch.arange(len(self.noise), device=self.pool.labels.device))


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
    pool = _scored_examples(search, data).to(task.device)
    require_images(pool.inputs)
    signs = torch.cat(
        [
            _draw_signs(search.functions, search.images, stream(search.seed, "search", "signs")),
            _draw_signs(search.functions, len(pool) - search.images, stream(search.seed, "search", "more signs")),
        ],
        1,
    )
    first = pool.inputs[: search.images]
    order = torch.randperm(len(data.train), generator=stream(search.seed, "search", "held out"))
    held_out = max(1, min(MOST_HELD_OUT, round(HELD_OUT * len(order))))
    return Material(
        task=task,
        pool=pool,
        noise=uniform_like(first, stream(search.seed, "search", "noise")),
        signs=signs,
        batches=_draw_batches(search, len(pool)),
        training=data.train.take(order[held_out:]),
        held_out=data.train.take(order[:held_out]),
    )


def semi_train(search: Search, task: Task, progress: Progress | None = None) -> dict[str, Tensor]:
    """Return a model's parameters, by its names, after some epochs on a share of the training part.

    Args:
        search: the settings; `share`, `epochs`, `batch_size` and `optimiser` count.
        task: the task with its untrained model, which stays as it is.
        progress: called after each epoch.
    """
    data = search.data.load()
    part = data.train.take(_order(search, data)[: _training_size(search, data)])
    per_epoch = len(part) // min(search.batch_size, len(part))

    def after(step: int) -> None:
        if progress is not None and step % per_epoch == 0:
            progress(step // per_epoch, search.epochs)

    found = train(search, task, part, search.epochs * per_epoch, after=after)
    if not all(bool(torch.isfinite(tensor).all()) for tensor in found.values()):
        raise InvalidValue(
            "The little training of the search diverged. Choose an `optimiser` with a smaller learning rate."
        )
    return found


def train(
    search: Search,
    task: Task,
    examples: Batch,
    steps: int,
    change: Callable[[Batch, int], Batch] = lambda batch, step: batch,
    after: Callable[[int], None] = lambda step: None,
) -> dict[str, Tensor]:
    """Return a model's parameters, by its names, after some steps on examples.

    Args:
        search: the settings; `batch_size`, `optimiser` and `seed` count.
        task: the task with its untrained model, which stays as it is.
        examples: what is learned from.
        steps: how many.
        change: what becomes of the batch of a step before it is learned from.
        after: called with the number of steps so far.
    """
    leaves = {name: tensor.clone().requires_grad_(True) for name, tensor in task.model.tensors().items()}
    optimiser = search.optimiser.over(leaves.values())
    size = min(search.batch_size, len(examples))
    per_epoch = len(examples) // size
    for step in range(steps):
        positions = Shuffled().positions(examples, step // per_epoch, step, size, search.seed, "search")
        batch = change(examples.take(positions.to(examples.labels.device)), step).to(task.device)
        found = gradient(task, leaves, batch).tensors
        for name, leaf in leaves.items():
            leaf.grad = found[name]
        optimiser.step()
        after(step + 1)
    return {name: leaf.detach() for name, leaf in leaves.items()}


def _scored_examples(search: Search, data: Data) -> Batch:
    rest, wanted = len(data.test) - ATTACKED, search.images * search.batches
    if rest >= search.images:
        order = torch.randperm(rest, generator=stream(search.seed, "search", "images"))[:wanted]
        found = data.test.take(ATTACKED + order)
    else:
        unused = _order(search, data)[_training_size(search, data) :]
        if len(unused) < search.images:
            raise InvalidValue(
                f"The `images` of a search must be at most {max(rest, len(unused))}: test images after the first "
                f"{ATTACKED}, or training images beside the share that is trained on. Got {search.images} instead."
            )
        found = data.train.take(unused[:wanted])
    if len(torch.unique(found.labels[: search.images])) < 2:
        raise InvalidValue(
            f"A search needs images of at least 2 classes. All {search.images} that were drawn are of one."
        )
    return found


def _draw_signs(places: int, images: int, rng: Stream) -> Tensor:
    # Row by row: a search for longer policies has the same signs in the first places, and keeps its scores.
    return torch.stack([2 * torch.randint(2, (images,), generator=rng) - 1 for _ in range(places)])


def _draw_batches(search: Search, pool: int) -> Tensor:
    """Return the positions in the pool of each batch; the first batch is what privacy is scored on."""
    order = torch.arange(pool)
    if pool >= search.images * search.batches:
        return order.view(-1)[: search.images * search.batches].view(search.batches, search.images)
    rng = stream(search.seed, "search", "batches")
    others = [torch.randperm(pool, generator=rng)[: search.images] for _ in range(search.batches - 1)]
    return torch.stack([order[: search.images], *others])


def _order(search: Search, data: Data) -> Tensor:
    return torch.randperm(len(data.train), generator=stream(search.seed, "search", "training"))


def _training_size(search: Search, data: Data) -> int:
    return max(1, round(search.share * len(data.train)))
