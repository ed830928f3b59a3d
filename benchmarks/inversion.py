"""The batched matching engine against the same attack as a plain PyTorch loop, one victim at a time.

Both use all cores, on the same victims with the same starting points and the same number of evaluations: the loop through torch's
threads, the engine as an audit runs it, in one process per core with one thread each. Tracing counts, starting processes does not.
Victims are crops of the bundled photographs, so that the benchmark needs no data from outside.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from multiprocessing.pool import Pool

import torch
import torch.nn.functional as F
from _rows import Row, parser, show
from torch import Tensor

from leaktight.attacks import AdamDescent, GradientMatching, LbfgsDescent
from leaktight.attacks.engine import Engine
from leaktight.attacks.initial import initial
from leaktight.attacks.replay import Replay
from leaktight.core.defence import Undefended
from leaktight.core.local import Local
from leaktight.core.random import stream
from leaktight.core.run import Inside, MessageKey, Run
from leaktight.core.task import Batch, Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Photos
from leaktight.learning import Client, Server, classification
from leaktight.metrics.image import psnr
from leaktight.models import ConvNet, DLNet, Network

CLASSES = 10


def observed(network: Network, victims: int) -> Run:
    """Let each victim send the gradient of one image."""
    images = Photos().load().train.inputs[:victims]
    labels = torch.arange(victims) % CLASSES
    task = classification(network.build((3, 32, 32), CLASSES, seed=0), (3, 32, 32), CLASSES)
    server = Server(task.public_parameters())
    inside: dict[MessageKey, Inside] = {}
    transcript = []
    for number in range(victims):
        one = Batch(images[number : number + 1], labels[number : number + 1])
        client = Client(f"client-{number}", task, one, Undefended(), Local(f"client-{number}", seed=0), batch_size=1)
        ask = server.ask(client.name, 0)
        found = client.answer(ask)
        inside[found.sent.key] = found
        transcript += [ask, found.sent]
    return Run(tuple(transcript), task, Undefended(), inside)


def batched(pool: Pool, attack: GradientMatching, network: Network, victims: int) -> Tensor:
    """Attack all victims through the engine, an equal part in each process."""
    cores = os.cpu_count() or 1
    parts = [(attack, network, victims, range(core * victims // cores, (core + 1) * victims // cores)) for core in range(cores)]
    return torch.cat(pool.starmap(part, parts))


def part(attack: GradientMatching, network: Network, victims: int, places: range) -> Tensor:
    """Attack some of the victims, from the starting points that they have among all."""
    torch.set_num_threads(1)
    run = observed(network, victims)
    view = ThreatModel(knows=frozenset({Knows.LABELS})).view(run)
    group = [view.exchanges()[place] for place in places]
    engine = Engine(attack.victims(Replay.of(view.task, group[0].sent), group, view, stream(0)), attack.search())
    starts = initial(attack.initial, victims, run.public.shape, stream(0)).flatten(1)
    return engine.run_from(starts[places.start : places.stop]).inputs.flatten(0, 1)


def plain(attack: GradientMatching, run: Run) -> Tensor:
    """Attack one victim after the other as a textbook would write it."""
    starts = initial(attack.initial, len(run.inside), run.public.shape, stream(0))
    return torch.cat(
        [_one(attack, run.public.model, found, start[None]) for found, start in zip(run.inside.values(), starts, strict=True)]
    )


def _one(attack: GradientMatching, model: Model, found: Inside, start: Tensor) -> Tensor:
    wanted = list(found.sent.tensors.values())
    label = found.used.labels
    parameters = list(model.parameters())
    image = start.clone().requires_grad_(True)
    distance = _l2 if attack.distance == "l2" else _cosine

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(image), label)
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        value = distance(list(gradients), wanted)
        value.backward(inputs=[image])  # type: ignore[no-untyped-call]
        return value

    optimiser: torch.optim.Optimizer
    if isinstance(attack.descent, LbfgsDescent):
        optimiser = torch.optim.LBFGS([image], lr=1.0, max_iter=attack.descent.inner, history_size=attack.descent.history)
    else:
        optimiser = torch.optim.Adam([image], lr=attack.descent.learning_rate)
    for _ in range(attack.iterations):
        optimiser.step(closure)  # type: ignore[no-untyped-call]
    return image.detach()


def _l2(gradients: list[Tensor], wanted: list[Tensor]) -> Tensor:
    return torch.stack([(one - other).square().sum() for one, other in zip(gradients, wanted, strict=True)]).sum()


def _cosine(gradients: list[Tensor], wanted: list[Tensor]) -> Tensor:
    inner = torch.stack([(one * other).sum() for one, other in zip(gradients, wanted, strict=True)]).sum()
    sizes = [torch.stack([tensor.square().sum() for tensor in tensors]).sum().sqrt() for tensors in (gradients, wanted)]
    return 1 - inner / (sizes[0] * sizes[1])


def timed(work: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Return the seconds that some work takes, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def peak() -> float:
    """Return the matrix-multiply rate that this machine reaches, in operations per second."""
    one = torch.randn(1536, 1536)
    times = [timed(lambda: one @ one)[0] for _ in range(12)]
    return 2 * 1536**3 / min(times)


def operations(run: Run, victims: int, evaluations: int) -> float:
    """Return how many operations the evaluations need at least, counted by torch on one plain evaluation."""
    from torch.utils.flop_counter import FlopCounterMode

    found = next(iter(run.inside.values()))
    model = run.public.model
    image = torch.rand(1, *run.public.shape, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        loss = F.cross_entropy(model(image), found.used.labels)
        gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        _l2(list(gradients), list(found.sent.tensors.values())).backward(inputs=[image])  # type: ignore[no-untyped-call]
    return float(counter.get_total_flops()) * victims * evaluations


def compare(name: str, network: Network, attack: GradientMatching, victims: int, bar: float, rate: float) -> list[Row]:
    """Measure one network."""
    run = observed(network, victims)
    truth = torch.cat([found.raw.inputs for found in run.inside.values()])
    evaluations = attack.iterations * attack.descent.evaluations
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        batched(pool, attack.model_copy(update={"iterations": 1}), network, victims)
        fast, guess = timed(lambda: batched(pool, attack, network, victims))
    slow, reference = timed(lambda: plain(attack, run))
    quality, wanted = psnr(guess, truth).median().item(), psnr(reference, truth).median().item()
    share = operations(run, victims, evaluations) / fast / rate
    return [
        Row(f"{name}: engine against one at a time", slow / fast, "x", bar),
        Row(f"{name}: engine, per victim and evaluation", 1000 * fast / victims / evaluations, "ms"),
        Row(f"{name}: one at a time, per victim and evaluation", 1000 * slow / victims / evaluations, "ms"),
        Row(f"{name}: median PSNR, engine", quality, "dB"),
        Row(f"{name}: median PSNR, difference to one at a time", abs(quality - wanted), "dB", 0.5, at_least=False),
        Row(f"{name}: share of the matrix-multiply peak", 100 * share, "%"),
    ]


def main() -> None:
    """Measure DLNet and ConvNet(16)."""
    options = parser(__doc__).parse_args()
    rate = peak()
    lbfgs = GradientMatching(distance="l2", descent=LbfgsDescent(), iterations=15, labels="given")
    adam = GradientMatching(distance="cosine", descent=AdamDescent(), iterations=40, labels="given")
    rows = [Row("matrix-multiply peak", rate / 1e9, "Gflop/s"), Row("cores", torch.get_num_threads(), "")]
    rows += compare("DLNet, L-BFGS", DLNet(), lbfgs, 32, 8.0, rate)
    rows += compare("ConvNet(16), Adam", ConvNet(width=16), adam, 32, 1.5, rate)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    rows.append(Row("peak memory of one engine process", children, "MiB"))
    show(rows, options.json)


if __name__ == "__main__":
    main()
