"""Gradient inversion against the same attack as a plain PyTorch loop, one victim at a time.

The rows are the time to 35 dB, the cost of an evaluation, and memory.

Both use all cores: the loop through torch's threads, the engine as an audit runs it, in one process per core with one
thread each. Tracing counts, starting processes and making the victims' messages do not. Nor does looking at the truth,
which only the benchmark does, with its clocks stopped. Victims are CIFAR-10 test images 100 to 131 if the archive is
given, else crops of the bundled photographs.

    python benchmarks/inversion.py [--data ../shared/data/cifar10/cifar10_10k_2k.npz]

The loop is timed on a few victims. To bring 32 to a median of 35 dB it must give each what the median victim needs, for
nobody tells an attacker which victim is done.
"""

from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from _rows import Row, parser, show
from torch import Tensor

from leaktight.attacks import GradientMatching, SearchAdam, SearchLBFGS
from leaktight.attacks.hypotheses import guess_hypotheses
from leaktight.attacks.presets import preset
from leaktight.attacks.search_engine import SearchEngine
from leaktight.core.allocator import keep_memory
from leaktight.core.defence import Undefended
from leaktight.core.local import Local
from leaktight.core.random import stream
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.core.task import Batch, Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Photos
from leaktight.learning import Client, Server, classification
from leaktight.metrics.image import psnr
from leaktight.models import ConvNet, DLNet, Network

CLASSES, VICTIMS, FIRST, WANTED = 10, 32, 100, 35.0
SHAPE = (3, 32, 32)
# How many victims the loop is timed on, how many steps of 20 evaluations each may take, and how often engine and loop
# take turns.
LOOPED, MOST_STEPS, ROUNDS = 7, 150, 5


@dataclasses.dataclass(frozen=True)
class Part:
    """What one process has to say about its victims.

    Args:
        seconds: how long the search took.
        reached: when each victim first was at 35 dB; infinite if never, or if several candidates raced, among which
            only the attacker's objective can choose.
        inputs: what was answered.
        memory: the peak of the process so far, in MiB.
    """

    seconds: float
    reached: Tensor
    inputs: Tensor
    memory: float


def read_images(file: Path | None) -> Batch:
    """Return one image for each victim."""
    if file is None:
        return Batch(Photos().load().train.inputs[:VICTIMS], torch.arange(VICTIMS) % CLASSES)
    archive, chosen = np.load(file), slice(FIRST, FIRST + VICTIMS)
    pixels = torch.tensor(archive["x_test"][chosen]).float().permute(0, 3, 1, 2) / 255
    return Batch(pixels, torch.tensor(archive["y_test"][chosen]).long().flatten())


def observe(network: Network, images: Batch) -> Run:
    """Let each victim send the gradient of one image."""
    task = classification(network.build(SHAPE, CLASSES, seed=0), SHAPE, CLASSES)
    server = Server(task.public_parameters())
    truths: dict[MessageKey, GroundTruth] = {}
    transcript = []
    for number in range(VICTIMS):
        one = images.take(torch.tensor([number]))
        client = Client(f"client-{number}", task, one, Undefended(), Local(f"client-{number}", seed=0), batch_size=1)
        ask = server.ask(client.name, 0)
        found = client.answer(ask)
        truths[found.sent.key] = found
        transcript += [ask, found.sent]
    return Run(tuple(transcript), task, Undefended(), truths)


def noise() -> Tensor:
    """Return where the loop and the engine's copy of it start."""
    return torch.randn(VICTIMS, *SHAPE, generator=stream(0))


def batched(pool: Pool, attack: GradientMatching, network: Network, images: Batch) -> list[Part]:
    """Attack all victims through the engine, an equal part in each process."""
    cores = os.cpu_count() or 1
    edges = [core * VICTIMS // cores for core in range(cores + 1)]
    return pool.starmap(part, [(attack, network, images, range(*pair)) for pair in itertools.pairwise(edges)])


def part(attack: GradientMatching, network: Network, images: Batch, places: range) -> Part:
    """Attack some of the victims."""
    torch.set_num_threads(1)
    run = observe(network, images)
    view = ThreatModel(knows=frozenset({Knows.LABELS, Knows.DEFENCE})).view(run)
    group = [view.exchanges()[place] for place in places]
    truth = torch.cat([found.raw.inputs for found in run.truths.values()])[places.start : places.stop]
    seen: list[tuple[float, Tensor, Tensor]] = []
    watched = 0.0
    start = time.perf_counter()

    def watch(evaluation: int, owners: Tensor, points: Tensor) -> None:
        nonlocal watched
        now = time.perf_counter()
        seen.append((now - start - watched, owners.clone(), points.clone()))
        watched += time.perf_counter() - now

    ((_, victims),) = attack.cases(view, group, stream(0))
    objective = attack.objective(victims, view)
    raced = attack.restarts
    if attack.initial == "randn":
        starts = objective.pack(objective.encode(noise()[places.start : places.stop, None]), None, {})
    else:
        starts = attack.starts(objective, raced, stream(0))
    tried = guess_hypotheses(victims, raced, stream(0))
    assert tried.targets is not None  # the labels are given
    targets = tried.targets
    decode = torch.func.vmap(lambda point, target: objective.unpack(point, target)[1])
    engine = SearchEngine(objective.problem(tried), attack.search(raced), watch if raced == 1 else None)
    found = engine.run(starts, len(group))
    inputs = decode(found.points, targets[found.rows]).flatten(0, 1)
    seconds = time.perf_counter() - start - watched
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    reached = torch.full((len(group),), torch.inf)
    for moment, owners, points in seen:
        guesses = decode(points, targets[owners]).flatten(0, 1)
        there = owners[psnr(guesses, truth[owners]) >= WANTED]
        reached[there] = reached[there].clamp_max(moment)
    return Part(seconds, reached, inputs, memory)


def plain(attack: GradientMatching, model: Model, found: GroundTruth, start: Tensor) -> Iterator[Tensor]:
    """Attack one victim as a textbook would write it; yield the image after every step."""
    wanted = list(found.sent.tensors.values())
    label = found.used.labels
    parameters = list(model.parameters())
    image = start[None].clone().requires_grad_(True)
    distance = _l2 if attack.distance == "l2" else _cosine

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(image), label)
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        value = distance(list(gradients), wanted)
        value.backward(inputs=[image])  # type: ignore[no-untyped-call]
        return value

    optimiser: torch.optim.Optimizer
    if isinstance(attack.descent, SearchLBFGS):
        optimiser = torch.optim.LBFGS(
            [image], lr=1.0, max_iter=attack.descent.inner, history_size=attack.descent.history
        )
    else:
        optimiser = torch.optim.Adam([image], lr=attack.descent.learning_rate)
    for _ in range(attack.iterations):
        optimiser.step(closure)  # type: ignore[no-untyped-call]
        yield image.detach()


def _l2(gradients: list[Tensor], wanted: list[Tensor]) -> Tensor:
    return torch.stack([(one - other).square().sum() for one, other in zip(gradients, wanted, strict=True)]).sum()


def _cosine(gradients: list[Tensor], wanted: list[Tensor]) -> Tensor:
    inner = torch.stack([(one * other).sum() for one, other in zip(gradients, wanted, strict=True)]).sum()
    sizes = [torch.stack([tensor.square().sum() for tensor in tensors]).sum().sqrt() for tensors in (gradients, wanted)]
    return 1 - inner / (sizes[0] * sizes[1])


def loop_to_wanted(attack: GradientMatching, model: Model, found: GroundTruth, start: Tensor) -> tuple[float, float]:
    """Return the seconds and the evaluations until one victim is at 35 dB; infinite if it never is."""
    seconds, begun = 0.0, time.perf_counter()
    for step, image in enumerate(plain(attack, model, found, start), start=1):
        seconds += time.perf_counter() - begun
        if psnr(image, found.raw.inputs).item() >= WANTED:
            return seconds, step * attack.descent.evaluations
        begun = time.perf_counter()
    return torch.inf, torch.inf


def take_turns(work: Callable[[], float], other: Callable[[], float]) -> list[tuple[float, float]]:
    """Return what each returns in every round, the two one after the other."""
    return [(work(), other()) for _ in range(ROUNDS)]


def time_to_wanted(pool: Pool, images: Batch) -> list[Row]:
    """Compare how long 32 victims take to a median of 35 dB."""
    lean = preset("posterior", restarts=1, phases=1, initial="prior", labels="given")
    whole = preset("posterior", labels="given")
    dlg = GradientMatching(distance="l2", descent=SearchLBFGS(), iterations=MOST_STEPS, labels="given")
    assert isinstance(lean, GradientMatching)
    assert isinstance(whole, GradientMatching)
    run = observe(DLNet(), images)
    truths, starts = list(run.truths.values()), noise()
    truth = torch.cat([found.raw.inputs for found in truths])

    def race(attack: GradientMatching) -> tuple[float, float, Tensor]:
        parts = batched(pool, attack, DLNet(), images)
        reached = torch.cat([one.reached for one in parts]).sort().values[VICTIMS // 2].item()
        quality = psnr(torch.cat([one.inputs for one in parts]), truth)
        return reached, max(one.seconds for one in parts), quality

    races = [race(lean) for _ in range(ROUNDS)]
    searches = [race(whole) for _ in range(ROUNDS)]
    loops = [loop_to_wanted(dlg, run.public.model, truths[place], starts[place]) for place in range(LOOPED)]
    needed = torch.tensor([evaluations for _, evaluations in loops]).median().item()
    # The loop's best pace, as the engine's best race: another program on the machine slows a loop with several threads
    # the most.
    paces = [seconds / evaluations for seconds, evaluations in loops if evaluations < torch.inf]
    slow = VICTIMS * needed * min(paces, default=torch.inf)
    fast, searched = min(one[0] for one in races), min(one[1] for one in searches)
    return [
        Row("DLNet to a median of 35 dB: posterior against the loop", slow / fast, "x", 50.0),
        Row("DLNet to a median of 35 dB: posterior", fast, "s"),
        Row("DLNet to a median of 35 dB: loop", slow, "s"),
        Row("DLNet to 35 dB: evaluations of the loop, median", needed, ""),
        Row("DLNet, one start: the whole search", min(one[1] for one in races), "s"),
        Row("DLNet, one start: median PSNR at its end", races[0][2].median().item(), "dB", WANTED),
        Row("DLNet, preset as it is: the whole search", searched, "s"),
        Row("DLNet, preset as it is: median PSNR at its end", searches[0][2].median().item(), "dB", WANTED),
        Row("DLNet, preset as it is: the whole search against the loop", slow / searched, "x"),
    ]


def cost(pool: Pool, images: Batch, name: str, network: Network, attack: GradientMatching, bar: float) -> list[Row]:
    """Compare what an evaluation costs, with the same starts and as many evaluations."""
    run, starts, looped = observe(network, images), noise(), 4
    truths = list(run.truths.values())[:looped]
    truth = torch.cat([found.raw.inputs for found in run.truths.values()])[:looped]
    evaluations = attack.iterations * attack.descent.evaluations
    answers: dict[str, Tensor] = {}
    memory = 0.0

    def engine() -> float:
        nonlocal memory
        parts = batched(pool, attack, network, images)
        answers["engine"] = torch.cat([one.inputs for one in parts])[:looped]
        memory = max(one.memory for one in parts)
        return 1000 * max(one.seconds for one in parts) / VICTIMS / evaluations

    def loop() -> float:
        begun = time.perf_counter()
        last = [list(plain(attack, run.public.model, *pair))[-1] for pair in zip(truths, starts, strict=False)]
        seconds = time.perf_counter() - begun
        answers["loop"] = torch.cat(last)
        return 1000 * seconds / looped / evaluations

    rounds = take_turns(engine, loop)
    ratios = sorted(slow / fast for fast, slow in rounds)
    fast, slow = (min(seconds) for seconds in zip(*rounds, strict=True))
    apart = psnr(answers["engine"], truth).median() - psnr(answers["loop"], truth).median()
    return [
        Row(f"{name}: an evaluation, engine against the loop, median", ratios[ROUNDS // 2], "x", bar),
        Row(f"{name}: the same, lowest round", ratios[0], "x"),
        Row(f"{name}: the same, highest round", ratios[-1], "x"),
        Row(f"{name}: an evaluation of a victim, engine", fast, "ms"),
        Row(f"{name}: an evaluation of a victim, loop", slow, "ms"),
        Row(f"{name}: median PSNR, difference between the two", apart.abs().item(), "dB", 0.5, at_least=False),
        Row(f"{name}: peak memory of one engine process", memory, "MiB"),
    ]


def main() -> None:
    """Measure DLNet and ConvNet(16)."""
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, help="the archive of CIFAR-10")
    options = arguments.parse_args()
    keep_memory()
    images = read_images(options.data)
    lbfgs = GradientMatching(distance="l2", descent=SearchLBFGS(), iterations=15, labels="given")
    adam = GradientMatching(distance="cosine", descent=SearchAdam(), iterations=40, labels="given")
    # Other programs slow the loop's threads far more than the engine's processes: with any, no ratio below means
    # anything.
    rows = [Row("cores", torch.get_num_threads(), ""), Row("load by others, before", os.getloadavg()[0], "")]
    works: tuple[Callable[[Pool], list[Row]], ...] = (
        lambda pool: time_to_wanted(pool, images),
        lambda pool: cost(pool, images, "DLNet, L-BFGS", DLNet(), lbfgs, 8.0),
        lambda pool: cost(pool, images, "ConvNet(16), Adam", ConvNet(width=16), adam, 2.0),
    )
    for work in works:
        # New processes each time: a peak of memory never falls.
        with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
            rows += work(pool)
    show(rows, options.json)


if __name__ == "__main__":
    main()
