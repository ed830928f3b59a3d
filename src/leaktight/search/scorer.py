"""The scorer: scores policies one after the other, and does nothing twice that two of them have in common."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict

import numpy as np

from leaktight.core.draws import public_draws
from leaktight.core.message import Tensors
from leaktight.core.task import Batch
from leaktight.learning.evaluate import correct_examples
from leaktight.probes.accuracy_score import accuracy_score
from leaktight.probes.privacy_score import privacy_scores
from leaktight.search.candidates import Indices
from leaktight.search.material import Material, train
from leaktight.search.score_task import ImageScores, ScoreTask
from leaktight.search.settings import Search
from leaktight.transforms.batched import Pixels
from leaktight.transforms.images import as_bytes, from_bytes
from leaktight.transforms.library import function_at
from leaktight.transforms.policy import Policy, apply_function

MEMORY = 256 * 2**20
"""How many bytes of transformed images are kept, the latest used ones."""


class Scorer:
    """Computes what policies score on a search's images.

    A policy's images are what its last function makes of those of the policy before it, so that `3-1-7` and `3-1-4`
    share `3-1`. Signs belong to the image and the place in the policy: what comes out depends on the seed, the policy
    and the image alone. Policies whose images come out the same are scored once, whatever their functions are.

    Args:
        search: the settings.
        material: what is scored on.
        parameters: of the model that was trained a little, by the model's names.
        memory: about how many bytes of transformed images are kept.
    """

    def __init__(self, search: Search, material: Material, parameters: Tensors, memory: int = MEMORY) -> None:
        self._search, self._material, self._memory = search, material, memory
        self.trained = {name: tensor.to(material.task.device) for name, tensor in parameters.items()}
        self._untrained = material.task.model.tensors()
        self._signs = material.signs.numpy()
        self._first = as_bytes(material.pool.inputs)
        self._batches = material.batches.numpy()
        self._images: OrderedDict[Indices, Pixels] = OrderedDict()
        self._scores: dict[tuple[str, int, bytes], ImageScores] = {}
        self.applied = self.scored = 0

    def score(self, task: ScoreTask) -> ImageScores:
        """Return the scores of a task: one for each of its images, or for each batch."""
        if task.what == "training":
            return self._learn(task.acts)
        pixels = self.images(task.acts)
        if task.what == "privacy":
            pixels = pixels[task.start : task.stop]
        key = task.what, task.start, hashlib.sha256(pixels.tobytes()).digest()
        if key not in self._scores:
            self._scores[key] = self._privacy(task, pixels) if task.what == "privacy" else self._accuracy(pixels)
            self.scored += 1
        return self._scores[key]

    def images(self, acts: Indices) -> Pixels:
        """Return all images after a policy in its canonical form, as bytes; nobody may change them in place."""
        if not acts:
            return self._first
        if acts not in self._images:
            before = self.images(acts[:-1])
            every = np.ones(len(before), dtype=np.bool_)
            self._images[acts] = apply_function(function_at(acts[-1]), before, self._signs[len(acts) - 1], every)
            self.applied += 1
            while len(self._images) > max(1, self._memory // self._first.nbytes):
                self._images.popitem(last=False)
        self._images.move_to_end(acts)
        return self._images[acts]

    def _privacy(self, task: ScoreTask, pixels: Pixels) -> ImageScores:
        own, part = self._material, slice(task.start, task.stop)
        images = from_bytes(pixels, own.pool.inputs)
        how = self._search.similarity, self._search.blends
        scores = privacy_scores(own.task, self.trained, images, own.pool.labels[part], own.noise[part], *how)
        return tuple(scores.tolist())

    def _accuracy(self, pixels: Pixels) -> ImageScores:
        own = self._material
        batches = [from_bytes(pixels[places], own.pool.inputs) for places in self._batches]
        return tuple(accuracy_score(own.task, self._untrained, images) for images in batches)

    def _learn(self, acts: Indices) -> ImageScores:
        """Train a model on images after a policy, and return for each image that was held out whether it was right."""
        own, search = self._material, self._search
        policy = Policy(branches=(acts,)) if acts else None

        def change(batch: Batch, step: int) -> Batch:
            if policy is None:
                return batch
            draws = public_draws(search.seed, "search", "brief training", step)
            return dataclasses.replace(batch, inputs=policy.apply(batch.inputs, draws))

        learned = train(search, own.task, own.training, search.steps, change)
        self.scored += 1
        return tuple(correct_examples(own.task, learned, own.held_out).double().tolist())
