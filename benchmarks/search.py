"""The transformation search against a literal one: one image, one blend, one backward pass at a time.

Bundled photos of 32x32, the small smooth network after a little training, 100 images, 21 blends. The literal loop does
what the paper's formulas say for a few of the same candidates, each function applied by Pillow to one image, and its
time is scaled to all of them; one thread is its fastest. The search draws the candidates of one seed, with one worker
and with one per core, exhaustively and racing. Its time has the start of workers in it; the little training, which both
need, was done before. Scores of both are compared on the way.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from _rows import Row, parser, show
from PIL import Image
from torch import Tensor

from leaktight.core.random import stream
from leaktight.data import Photos
from leaktight.learning import Adam
from leaktight.models import DLNet
from leaktight.running.file_cache import Folder
from leaktight.search import Result, Search, search
from leaktight.search.candidates import CandidatePolicy, draw_candidates
from leaktight.search.material import Material, material
from leaktight.search.run import MODEL
from leaktight.search.score_task import ScoreTask
from leaktight.search.score_worker import load_scorer
from leaktight.search.scorer import Scorer
from leaktight.transforms import LIBRARY, OPERATIONS


def settings(candidates: int) -> Search:
    """Return the search that is measured; the network is trained until policies differ in their scores."""
    return Search(
        data=Photos(classes=8),
        model=DLNet(),
        candidates=candidates,
        share=0.8,
        epochs=12,
        optimiser=Adam(learning_rate=0.003),
        threshold=1.5,
        batches=1,
        trained=0,
    )


@dataclasses.dataclass(frozen=True)
class Literal:
    """The paper's formulas, one by one."""

    made: Material
    parameters: dict[str, Tensor]

    def policy(self, one: CandidatePolicy) -> tuple[float, float]:
        """Return the privacy and the accuracy score of one policy, and nothing is kept for the next."""
        images = [self.transformed(one, place) for place in range(len(self.made.examples))]
        return statistics.fmean(self.privacy(image, place) for place, image in enumerate(images)), self.accuracy(images)

    def transformed(self, one: CandidatePolicy, place: int) -> Tensor:
        """Apply each function to one image."""
        pixels = self.made.examples.inputs[place].mul(255).round().byte().permute(1, 2, 0).numpy()
        image = Image.fromarray(pixels)
        for position, index in enumerate(one.acts):
            function = LIBRARY[index]
            image = OPERATIONS[function.operation].apply(image, function.value, int(self.made.signs[position, place]))
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255

    def gradient(self, image: Tensor, place: int) -> list[Tensor]:
        """Return the gradient of one image's loss."""
        leaves = {name: tensor.detach().requires_grad_(True) for name, tensor in self.parameters.items()}
        outputs = torch.func.functional_call(self.made.task.model, leaves, (image[None],))
        loss = F.cross_entropy(outputs, self.made.examples.labels[place : place + 1])
        return list(torch.autograd.grad(loss, list(leaves.values())))

    def privacy(self, image: Tensor, place: int) -> float:
        """Return the area under the similarity curve of one image."""
        target, curve = self.gradient(image, place), list[float]()
        for step in range(21):
            found = self.gradient((1 - step / 20) * self.made.noise[place] + step / 20 * image, place)
            dot = sum((a * b).sum().item() for a, b in zip(found, target, strict=True))
            lengths = [math.sqrt(sum((a * a).sum().item() for a in some)) for some in (found, target)]
            curve.append(dot / (lengths[0] * lengths[1]))
        return sum((a + b) / 40 for a, b in itertools.pairwise(curve))

    def accuracy(self, images: list[Tensor]) -> float:
        """Return the accuracy score of all images, with one backward pass for each."""
        rows = []
        for image in images:
            leaf = image[None].requires_grad_(True)
            [row] = torch.autograd.grad(self.made.task.model(leaf).sum(), leaf)
            rows.append(row.flatten().double().numpy())
        values = np.linalg.eigvalsh(np.corrcoef(np.stack(rows))) + 1e-5
        return -float(np.mean(np.log(values) + 1 / values))


def literal_rows(literal: Literal, scorer: Scorer, some: list[CandidatePolicy], images: int) -> tuple[float, list[Row]]:
    """Return seconds per policy of the literal loop, and how far its scores are from ours."""
    start = time.perf_counter()
    slow = [literal.policy(one) for one in some]
    seconds = (time.perf_counter() - start) / len(some)
    apart = 0.0
    for one, (privacy, accuracy) in zip(some, slow, strict=True):
        ours = (
            scorer.score(ScoreTask("privacy", 0, images, one.acts)),
            scorer.score(ScoreTask("accuracy", 0, images, one.acts)),
        )
        apart = max(apart, abs(statistics.fmean(ours[0]) - privacy), abs(ours[1][0] / accuracy - 1))
    return seconds, [
        Row("literal loop", 60 / seconds, "policies/min"),
        Row("largest difference of its scores from ours", apart, "", 1e-5, at_least=False),
    ]


def timed(wanted: Search, trained: Path, workers: int, method: str) -> tuple[float, Result]:
    """Search in a new folder, with the model that was trained before; return seconds and the result."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "policy.search"
        kept.mkdir()
        shutil.copy(trained, kept / MODEL)
        start = time.perf_counter()
        found = search(wanted.model_copy(update={"method": method}), Path(folder) / "policy.toml", workers)
        return time.perf_counter() - start, found


def main() -> None:
    """Measure the literal loop, the exhaustive search and the race."""
    options = parser(__doc__)
    options.add_argument("--candidates", type=int, default=200, help="policies to draw")
    options.add_argument("--literal", type=int, default=3, help="policies that the literal loop scores")
    options.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="worker processes")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    wanted = settings(chosen.candidates)
    with tempfile.TemporaryDirectory() as folder:
        small = wanted.model_copy(update={"candidates": 8, "policies": 1, "threshold": 1e9})
        search(small, Path(folder) / "policy.toml")
        model = Path(folder) / "policy.search" / MODEL
        scorer, made = load_scorer(wanted, Folder(model.parent), model.name), material(wanted)
        some = list(draw_candidates(chosen.literal, wanted.library, wanted.functions, stream(0, "benchmark")))
        seconds, rows = literal_rows(Literal(made, scorer.trained), scorer, some, wanted.images)
        found: dict[str, Result] = {}
        for method, bar in (("random", 10.0), ("racing", 40.0)):
            for workers in sorted({1, chosen.workers}):
                spent, found[method] = timed(wanted, model, workers, method)
                name = f"{'exhaustive' if method == 'random' else 'racing'}, {workers} worker{'s' * (workers > 1)}"
                rows.append(Row(name, 60 * chosen.candidates / spent, "policies/min"))
                asked = bar if workers == chosen.workers else None
                rows.append(Row(f"{name}: against the literal loop", seconds * chosen.candidates / spent, "x", asked))
    gap = 100 * (found["racing"].privacy / found["random"].privacy - 1)
    rows.append(Row("racing: mean privacy score above the exhaustive choice's", gap, "%", 1.0, at_least=False))
    rows.append(Row("racing: share of image scores", found["racing"].image_scores / found["random"].image_scores, ""))
    print(f"exhaustive: {found['random'].policy}   racing: {found['racing'].policy}")
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
