"""What published attacks recover from untrained networks: median PSNR by batch size.

The images are your own or the bundled ones.

The setting of Zhu et al. 2019: DLNet with weights and biases uniform in (-0.3, 0.3), no normalisation, one shared
gradient. For numbers that can be compared with others', give CIFAR-10 test images as an .npz file with `x_test` and
`y_test`.

`--rank` says how much of a batch its gradient determines at all: the rank of the gradient's Jacobian at the true
images, as a share of their pixels. Where it is below one, images that differ along the remaining directions send the
same gradient to first order, and no search by gradient alone can tell them apart.
"""

from __future__ import annotations

import copy
import dataclasses
import time

import torch
from _rows import Row, parser, show
from torch import Tensor

from leaktight.attacks import Analytic, preset
from leaktight.core.attack import Attack, Reconstruction
from leaktight.core.defence import Undefended
from leaktight.core.local import Local
from leaktight.core.random import stream
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.core.task import Batch
from leaktight.core.threat import ThreatModel
from leaktight.data import Data, from_text
from leaktight.learning import Client, Server, classification
from leaktight.metrics.image import psnr
from leaktight.metrics.pairing import arrange
from leaktight.models import MLP, DLNet, Network


def observed(network: Network, data: Data, victims: int, batch: int) -> Run:
    """Let each victim send the gradient of its own images."""
    task = classification(network.build(data.shape, data.classes, seed=0), data.shape, data.classes)
    server, truths, transcript = Server(task.public_parameters()), dict[MessageKey, GroundTruth](), []
    for number in range(victims):
        owned = data.test.take(torch.arange(number * batch, (number + 1) * batch))
        name = f"client-{number}"
        client = Client(
            name, task, Batch(owned.inputs, owned.labels), Undefended(), Local(name, seed=0), batch_size=batch
        )
        ask = server.ask(name, 0)
        found = client.answer(ask)
        truths[found.sent.key] = found
        transcript += [ask, found.sent]
    return Run(tuple(transcript), task, Undefended(), truths)


def measure(attack: Attack, run: Run) -> tuple[torch.Tensor, float]:
    """Return each image's PSNR and the seconds it took."""
    start = time.perf_counter()
    guess = attack(ThreatModel(knows=ThreatModel().knows | attack.needs).view(run), stream(0))
    seconds = time.perf_counter() - start
    if not isinstance(guess, Reconstruction):
        raise TypeError(f"{attack} does not reconstruct.")
    pairs = zip(guess.keys, guess.inputs, strict=True)
    each = [
        psnr(arrange(inputs.clamp(0, 1), run.truths[key].raw.inputs), run.truths[key].raw.inputs)
        for key, inputs in pairs
    ]
    return torch.cat(each), seconds


def rank(run: Run) -> tuple[int, int]:
    """Return how many directions of the first message's images its gradient shows, and how many there are.

    The rank is computed in double precision.
    """
    found = next(iter(run.truths.values()))
    task = dataclasses.replace(run.public, model=copy.deepcopy(run.public.model).double())
    parameters, pixels = task.model.tensors(), found.used.inputs.double().flatten()

    def sent(pixels: Tensor) -> Tensor:
        def loss(tensors: dict[str, Tensor]) -> Tensor:
            return task.loss(task.forward(tensors, pixels.view(found.used.inputs.shape)), found.used.labels).mean()

        return torch.cat([tensor.flatten() for tensor in torch.func.grad(loss)(parameters).values()])

    def along(direction: Tensor) -> Tensor:
        seen: Tensor = torch.func.jvp(sent, (pixels,), (direction,))[1]
        return seen

    count = pixels.numel()
    every = torch.eye(count, dtype=torch.float64)
    jacobian = torch.cat([torch.func.vmap(along)(some) for some in torch.split(every, 256)])
    sizes = torch.linalg.eigvalsh(jacobian @ jacobian.T).clamp_min(0).sqrt()
    # Eigenvalues of the square are exact to 1e-16 of the largest, so that their roots are to 1e-8.
    return int((sizes > 1e-6 * sizes.max()).sum()), count


def main() -> None:
    """Measure the presets by batch size."""
    options = parser(__doc__)
    options.add_argument(
        "--data", default="photos", help="a bundled name, or a path as `leaktight audit --data` takes it"
    )
    options.add_argument("--presets", nargs="+", default=["dlg2019", "idlg2020", "geiping2020"])
    options.add_argument("--batches", nargs="*", type=int, default=[1, 4, 8])
    options.add_argument(
        "--victims", type=int, default=32, help="messages at batch size 1; fewer for larger ones, as many images"
    )
    options.add_argument("--share", type=float, default=1.0, help="the share of each preset's iterations to run")
    options.add_argument(
        "--rank", nargs="*", type=int, default=[], metavar="BATCH", help="also measure the rank (4: two minutes)"
    )
    chosen = options.parse_args()
    data = from_text(chosen.data).load()
    rows = []
    for batch in chosen.rank:
        shown, count = rank(observed(DLNet(), data, 1, batch))
        rows.append(Row(f"batch {batch}: directions that the gradient shows, of {count}", 100 * shown / count, "%"))
    for batch in chosen.batches:
        victims = max(4, chosen.victims // batch)
        run = observed(DLNet(), data, victims, batch)
        for name in chosen.presets:
            full = preset(name)
            iterations = max(1, int(chosen.share * dict(full)["iterations"]))
            values, seconds = measure(full if chosen.share == 1 else preset(name, iterations=iterations), run)
            title = f"{name}, batch {batch}, {victims} victims"
            bar = 35.0 if (name, batch) == ("dlg2019", 1) else None
            rows.append(Row(f"{title}: median PSNR", values.median().item(), "dB", bar))
            rows.append(Row(f"{title}: images of at least 20 dB", 100 * (values >= 20).float().mean().item(), "%"))
            rows.append(Row(f"{title}: time", seconds, "s"))
    values, _ = measure(Analytic(), observed(MLP(), data, chosen.victims, 1))
    rows.append(Row("analytic on an MLP, batch 1: lowest PSNR", values.min().item(), "dB", 80.0))
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
