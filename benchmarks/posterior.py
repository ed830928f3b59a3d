"""How much the strongest attacker reads: `posterior` on CIFAR-10 test images, by network and by defence.

Its settings were chosen on training images and frozen before. Victims are test images 100 to 131; the attacker sits at
the server, knows the defence, and reads labels. Networks are untrained unless a number of steps is named. Each row is
the median PSNR in dB over images, with a bootstrap interval over images; how many searches failed, as the metric
`search_gap` has it; the mean objective of the guesses and of the truth; and, for a defence, the median of the same
attack by somebody who takes the defence for off.

    python benchmarks/posterior.py [--data ../shared/data/cifar10/cifar10_10k_2k.npz] [--only dlnet]
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from _rows import Row, parser, show
from torch import Tensor

from leaktight.attacks import preset
from leaktight.core.attack import Reconstruction
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.core.task import Batch, Task
from leaktight.core.threat import Knows, ThreatModel, View
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, LocalDP, Polarization, Pruning, TopK, Transformation
from leaktight.learning import Adam, Client, Optimiser, Server, Sgd, classification
from leaktight.metrics.image import psnr
from leaktight.metrics.pairing import arrange_all
from leaktight.metrics.search_gap import OBJECTIVE_OF_GUESS, OBJECTIVE_OF_TRUTH, SEARCH_FAILED, SearchGap
from leaktight.models import MLP, VGG16, AlexNet, ConvNet, DLNet, LeNet, Network, ResNet20
from leaktight.statistics.interval import bootstrap
from leaktight.transforms import Policy

SHAPE, CLASSES, FIRST, LAST = (3, 32, 32), 10, 100, 132


@dataclasses.dataclass(frozen=True)
class Case:
    """One row: who is attacked, and the number asked for.

    Args:
        name: what it is called.
        network: which network.
        bar: the median asked for, in dB; None for the number alone.
        defence: what participants do.
        batch: examples behind a message.
        trained: steps of Adam on batches of 64 before the attack.
        rounds: messages of each participant about its batch.
        steps: local steps behind an update; 0 for a gradient.
        optimiser: of these steps.
        settings: what the attack does otherwise.
        preset: the attack.
        images: how many images.
    """

    name: str
    network: Network
    bar: float | None = None
    defence: Defence = dataclasses.field(default_factory=Undefended)
    batch: int = 1
    trained: int = 0
    rounds: int = 1
    steps: int = 0
    optimiser: Optimiser = dataclasses.field(default_factory=Sgd)
    settings: tuple[tuple[str, object], ...] = ()
    preset: str = "posterior"
    images: int = LAST - FIRST


def cases() -> Iterator[Case]:
    """Return all rows, the cheap ones first."""
    plain = DLNet()
    yield Case("dlnet", plain, 38)
    yield Case("dlnet, Gaussian 0.001", plain, 30, GaussianNoise(std=0.001))
    yield Case("dlnet, Gaussian 0.01", plain, 21, GaussianNoise(std=0.01))
    yield Case("dlnet, top-k 10 %", plain, 24, TopK(share=0.1))
    yield Case("dlnet, pruning 90 %", plain, None, Pruning(rate=0.9))
    yield Case("dlnet, Laplace 0.001", plain, None, LaplaceNoise(scale=0.001))
    for multiplier in (0.1, 1.0):
        yield Case(f"dlnet, DP-SGD {multiplier:g}", plain, None, DPSGD(clip=1.0, multiplier=multiplier))
        yield Case(f"dlnet, local DP {multiplier:g}", plain, None, LocalDP(clip=1.0, multiplier=multiplier))
    for weight in (0.1, 0.5):
        private = Polarization(alpha2=weight)
        yield Case(f"dlnet, polarization {weight:g}", plain, None, private)
        yield Case(f"dlnet, polarization {weight:g}, loss free", plain, None, private, preset="free-loss")
        yield Case(f"dlnet, polarization {weight:g}, public head", plain, None, private, preset="public-head")
    both = Chain(links=(TopK(share=0.1), GaussianNoise(std=0.001)))
    yield Case("dlnet, top-k 10 % then Gaussian 0.001", plain, None, both)
    yield Case("dlnet, batch 4", plain, 27, batch=4)
    yield Case("dlnet, batch 8", plain, 25, batch=8)
    yield Case("dlnet, 1,000 steps", plain, 20, trained=1000)
    yield Case("lenet", LeNet(), 27)
    yield Case("lenet, batch 4", LeNet(), 22, batch=4)
    yield Case("lenet, 200 steps", LeNet(), 20, trained=200)
    yield Case("lenet, 1,000 steps", LeNet(), None, trained=1000)
    yield Case("mlp", MLP(), None)
    joined = (("messages", "joined"),)
    noisy, changed = GaussianNoise(std=0.01), Transformation(policy=Policy.of("3-1-7"))
    yield Case("dlnet, Gaussian 0.01, four messages", plain, None, noisy, rounds=4, settings=joined)
    few = (("restarts", 1),)
    yield Case("dlnet, 3-1-7", plain, None, changed, settings=few)
    yield Case("dlnet, 3-1-7, four messages", plain, None, changed, rounds=4, settings=(*few, *joined))
    for kind, optimiser in (("SGD 0.001", Sgd(learning_rate=0.001)), ("Adam 0.001", Adam(learning_rate=0.001))):
        for way in ("unrolled", "surrogate"):
            settings = (("update", way), ("restarts", 4))
            yield Case(
                f"dlnet, 4 steps of {kind}, {way}", plain, batch=4, steps=4, optimiser=optimiser, settings=settings
            )
    yield Case("alexnet(64), features first", AlexNet(width=64), 24, preset="features-first")
    one = (("restarts", 2), ("phases", 2), ("iterations", 100))
    yield Case("convnet(16)", ConvNet(width=16), None, settings=one, images=8)
    yield Case("resnet20", ResNet20(), None, settings=one, images=4)
    yield Case("vgg16", VGG16(), None, settings=(("restarts", 1), ("phases", 1), ("iterations", 20)), images=2)


@dataclasses.dataclass(frozen=True)
class Images:
    """The data: inputs in [0, 1] and labels, for training and for the attack."""

    train: Batch
    test: Batch

    @classmethod
    def read(cls, file: Path) -> Images:
        """Read an archive of unsigned bytes."""
        archive = np.load(file)

        def batch(part: str) -> Batch:
            pixels = torch.tensor(archive[f"x_{part}"]).float().permute(0, 3, 1, 2) / 255
            return Batch(pixels, torch.tensor(archive[f"y_{part}"]).long().flatten())

        return cls(batch("train"), batch("test"))

    def task(self, case: Case) -> Task:
        """Return the public task, trained as far as the case says."""
        pixels = self.train.inputs
        statistics = (tuple(pixels.mean((0, 2, 3)).tolist()), tuple(pixels.std((0, 2, 3)).tolist()))
        task = classification(case.network.build(SHAPE, CLASSES, 0, statistics), SHAPE, CLASSES)
        draws, optimiser = torch.Generator().manual_seed(0), torch.optim.Adam(task.model.parameters(), lr=3e-3)
        for _ in range(case.trained):
            chosen = self.train.take(torch.randint(len(self.train), (64,), generator=draws))
            optimiser.zero_grad()
            task.loss(task.model(chosen.inputs), chosen.labels).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return task


def observe(case: Case, images: Images) -> Run:
    """Let participants with a batch each answer the server."""
    task = case.defence.on_agree(images.task(case))
    server, truths, transcript = Server(task.public_parameters()), dict[MessageKey, GroundTruth](), list[Message]()
    for start in range(FIRST, FIRST + case.images, case.batch):
        name = f"client-{start}"
        client = Client(
            name,
            task,
            images.test.take(torch.arange(start, start + case.batch)),
            case.defence,
            Local(name, seed=start),
            batch_size=case.batch // max(1, case.steps),
            local_steps=max(1, case.steps),
            optimiser=case.optimiser,
            shares=Kind.UPDATE if case.steps else Kind.GRADIENT,
        )
        for number in range(case.rounds):
            ask = server.ask(name, number)
            found = client.answer(ask)
            truths[found.sent.key] = found
            transcript += [ask, found.sent]
    return Run(tuple(transcript), task, case.defence, truths)


@dataclasses.dataclass(frozen=True)
class Measured:
    """The results of one row: the PSNR of each image, the share of failed searches, mean objectives, and seconds."""

    psnr: Tensor
    failed: float
    guess: float
    truth: float
    seconds: float


def measure(case: Case, run: Run, view: View) -> Measured:
    """Attack what participants sent, and compare with what they had."""
    attack = preset(case.preset, **dict(case.settings))
    begun = time.perf_counter()
    guess = attack(view, stream(0))
    seconds = time.perf_counter() - begun
    if not isinstance(guess, Reconstruction):
        raise TypeError(f"{attack} does not search.")
    truth = [run.truth(key) for key in guess.keys]
    gap = {reading.name: reading.value for reading in SearchGap().grade(guess, truth, stream(0))}
    first = [place for place, key in enumerate(guess.keys) if key[1] == 0]
    guesses, truths, _ = arrange_all(
        [guess.inputs[place].clamp(0, 1) for place in first], [truth[p].raw.inputs for p in first]
    )
    failed, found, best = (gap.get(name, math.nan) for name in (SEARCH_FAILED, OBJECTIVE_OF_GUESS, OBJECTIVE_OF_TRUTH))
    return Measured(psnr(guesses, truths), failed, found, best, seconds)


def median_interval(values: Tensor) -> tuple[float, float]:
    """Return a 95 % interval of the median, by the bootstrap."""
    draws = torch.randint(len(values), (2000, len(values)), generator=torch.Generator().manual_seed(0))
    medians = values[draws].median(1).values.sort().values
    return medians[50].item(), medians[1949].item()


def main() -> None:
    """Print all rows, or those whose name begins with `--only`."""
    arguments = parser(__doc__)
    arguments.add_argument(
        "--data", type=Path, default=Path("../shared/data/cifar10/cifar10_10k_2k.npz"), help="the archive of CIFAR-10"
    )
    arguments.add_argument("--only", default="", help="rows whose name begins so")
    given = arguments.parse_args()
    if not given.data.is_file():
        print(f"Skipped: {given.data} is not there. Give the archive of CIFAR-10 by --data.")
        return
    torch.set_num_threads(1)
    images, rows = Images.read(given.data), list[Row]()
    measured: dict[str, Tensor] = {}
    for case in cases():
        if not case.name.startswith(given.only):
            continue
        run = observe(case, images)
        view = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS})).view(run)
        found = measure(case, run, view)
        low, high = median_interval(found.psnr)
        measured[case.name] = found.psnr
        rows.append(Row(case.name, found.psnr.median().item(), "dB", case.bar))
        note = (
            f"({low:.1f} to {high:.1f}), {found.failed:4.0%} failed, objective {found.guess:.4g}, "
            f"of the truth {found.truth:.4g}"
        )
        if not isinstance(case.defence, Undefended):
            unaware = measure(case, run, dataclasses.replace(view, defence=Undefended()))
            note += f", unaware {unaware.psnr.median().item():.1f} dB"
        print(f"{case.name:<44} {found.psnr.median().item():5.1f} dB {note}, {found.seconds:.0f} s", flush=True)
    for name in ("dlnet, Gaussian 0.01", "dlnet, 3-1-7"):
        if f"{name}, four messages" in measured and name in measured:
            gain = measured[f"{name}, four messages"] - measured[name]
            ends = bootstrap(gain, stream(0))
            print(f"{name}: four messages beat one by {gain.mean().item():.1f} dB (95 % interval {ends})")
    show(rows, given.json)


if __name__ == "__main__":
    main()
