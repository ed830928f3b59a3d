"""Features: what the first linear layer saw, read off its shared gradient, whatever network follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor, nn

from leaktight.attacks.batch_reading import read_batch
from leaktight.attacks.label_reading import labels_by_head
from leaktight.attacks.linear_layer import LinearLayer, augment
from leaktight.attacks.replay import Replay
from leaktight.attacks.victims import Victims
from leaktight.core.message import Kind, Tensors
from leaktight.core.random import Stream, stream
from leaktight.core.task import Batch, Task
from leaktight.learning.gradient import gradient
from leaktight.priors import Coordinates

# A reading counts as exact to this share of the features' size: less would make the search for examples stiff and gain
# nothing.
_BLUR = 0.01
# On how many random examples a head is tried.
_TRIED = 8
# How often Newton's method may step, and below which residual it has found a solution.
_STEPS, _SOLVED = 40, 1e-7
# How far off a feature may be of which nothing is known.
_UNKNOWN = 1e6
# How many draws SPEAR may make for each message.
_DRAWS = 2048


@dataclasses.dataclass(frozen=True)
class Features:
    """What a linear layer saw of each victim's examples, by several readings where more than one fits.

    Args:
        layer: the layer, by the model's name.
        values: (victims, readings, examples, features).
        spread: how far off a reading is expected to be, (victims, features), or (victims, examples, features).
    """

    layer: str
    values: Tensor
    spread: Tensor


def read_features(victims: Victims, coordinates: Coordinates, readings: int, rng: Stream) -> Features | None:
    r"""Return what the first linear layer saw; None where it cannot be read.

    For one example the layer's gradient is \(\delta x^T\) and that of its bias \(\delta\), for ANY loss and whatever
    network comes after, so

    .. math:: x_i = \frac{\sum_c \delta_c G_{ci}}{\sum_c \delta_c^2},

    over the entries that were sent. For several examples behind a ReLU it is read by peeling and SPEAR
    (`batch_reading`); each example that is certified can then be searched for by itself. For fewer examples than
    classes it is read off a head with cross entropy: with probabilities p the gradient is \(D^T X\),
    \(D = (p - y) / n\), and p follows from X again; a private loss beside it leaves that as it is. This is solved by
    Newton's method from several starts. Of examples with the same label more than one solution may fit: each is a
    reading.

    Args:
        victims: whose messages.
        coordinates: the prior's; Newton's method starts at the outputs for examples drawn from it.
        readings: how many to return, at least 1.
        rng: where the starts come from.

    References: Zhu and Blaschko 2021, R-GAP, for one example; Geiping et al. 2020, proposition 3.1; Dimitrov et al.
    2024, SPEAR.
    """
    sighting, task = victims.sightings[0], victims.replay.task
    layer = first_linear(task, tuple(sighting.sent))
    if layer is None or victims.replay.steps.count > 1 or victims.replay.steps.adaptive:
        return None
    weight, bias = (sighting.sent[str(task.wire(f"{layer}.{part}"))] for part in ("weight", "bias"))
    if victims.replay.examples == 1:
        return _read_one(layer, weight, bias, readings)
    if victims.replay.kind is Kind.UPDATE:
        weight, bias = (-part / victims.replay.steps.learning_rate for part in (weight, bias))
    if layer != public_head(task):
        return _read_hidden(victims, layer, weight, bias, readings, rng)
    times = victims.replay.head_weight
    if victims.targets is None or times is None or not _is_plain(victims.replay):
        return None
    return _read_batch(victims, coordinates, layer, weight / times, readings, rng)


def first_linear(task: Task, names: tuple[str, ...]) -> str | None:
    """Return the first linear layer if its weight and bias were sent and it sees one vector for each example."""
    for name, module in task.model.named_modules():
        if isinstance(module, nn.Linear):
            sent = all(task.wire(f"{name}.{part}") in names for part in ("weight", "bias"))
            if not sent or module.bias is None:
                return None
            with torch.no_grad():
                seen = layer_inputs(
                    task, task.public_parameters(), torch.zeros(1, *task.shape, device=task.device), name
                )
            return name if seen.shape[1] == module.in_features else None
    return None


def public_head(task: Task) -> str | None:
    """Return the linear layer that goes out as the agreed model's head, by the task's own name, or None."""
    layers = (
        name for name, module in task.model.named_modules() if isinstance(module, nn.Linear) and module.bias is not None
    )
    return next((name for name in layers if task.wire(f"{name}.weight") == "head.weight"), None)


def head_weight(task: Task) -> float | None:
    r"""Return by which factor a sender's head has the plain gradient, whatever else it trains for; None if by none.

    It is tried on random examples: the plain gradient of a linear head with cross entropy is \((p - y)^T X / n\).

    Example:
        >>> from leaktight.core.local import Local
        >>> from leaktight.defences import ClassKeys, Polarization
        >>> from leaktight.testing.toys import toy_task
        >>> private = Polarization(alpha1=0.5).on_task(toy_task(), Local("client-0", seed=0))
        >>> head_weight(toy_task()), head_weight(private)
        (1.0, 0.5)
        >>> head_weight(ClassKeys(dimensions=16).on_agree(toy_task())) is None
        True
    """
    layer = public_head(task)
    if layer is None:
        return None
    rng = stream(0, "head weight")
    inputs = torch.rand(_TRIED, *task.shape, generator=rng).to(task.device)
    labels = (torch.arange(_TRIED, device=task.device) % task.classes).long()
    parameters = task.model.tensors()
    seen = layer_inputs(task, task.public_parameters(), inputs, layer).detach()
    if seen.shape[1:] != parameters[f"{layer}.weight"].shape[1:]:
        return None
    outputs = nn.functional.linear(seen, parameters[f"{layer}.weight"], parameters[f"{layer}.bias"])
    plain = (outputs.softmax(1) - nn.functional.one_hot(labels, task.classes)).T @ seen / _TRIED
    real = gradient(task, parameters, Batch(inputs, labels)).tensors[f"{layer}.weight"]
    times = float((plain * real).sum() / plain.square().sum().clamp_min(1e-30))
    exact = bool((real - times * plain).norm() <= 1e-4 * real.norm()) and times > 0
    return round(times, 5) if exact else None


def layer_inputs(task: Task, parameters: Tensors, inputs: Tensor, layer: str) -> Tensor:
    """Return what a layer sees of some examples, (examples, features), differentiable."""
    seen: list[Tensor] = []
    hook = task.model.get_submodule(layer).register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    try:
        task.forward(task.model_parameters(parameters), inputs)
    finally:
        hook.remove()
    return seen[0].flatten(1)


def feature_misfit(task: Task, layer: str) -> Callable[[Tensor, Tensors, Tensor, Tensor], Tensor]:
    """Return the distance of features from those that were read: (inputs, parameters, values, spread) to a number."""

    def value(inputs: Tensor, parameters: Tensors, values: Tensor, spread: Tensor) -> Tensor:
        return 0.5 * ((layer_inputs(task, parameters, inputs, layer) - values) / spread).square().sum()

    return value


def _is_plain(replay: Replay) -> bool:
    """Return whether nothing was done to a message that Newton's method would have to know."""
    channel = replay.channel
    return not (channel.example or channel.step or channel.message)


def _read_one(layer: str, weight: Tensor, bias: Tensor, readings: int) -> Features:
    sent = (weight != 0).to(weight.dtype)
    size = torch.einsum("vo,voi->vi", bias.square(), sent)
    read = torch.einsum("vo,voi->vi", bias, weight) / size.clamp_min(1e-30)
    known = size > 1e-3 * bias.square().sum(1, keepdim=True)
    scale = torch.where(known, read, 0.0).square().sum(1, keepdim=True) / known.sum(1, keepdim=True).clamp_min(1)
    spread = torch.where(known, _BLUR * scale.sqrt(), _UNKNOWN).clamp_min(1e-12)
    return Features(layer, torch.where(known, read, 0.0)[:, None, None].expand(-1, readings, 1, -1), spread)


def _read_hidden(
    victims: Victims, layer: str, weight: Tensor, bias: Tensor, readings: int, rng: Stream
) -> Features | None:
    """Read the examples of each batch that are certified; None if there are none."""
    replay, sighting = victims.replay, victims.sightings[0]
    count, public = replay.examples, not replay.channel.private_task
    rate = -replay.steps.learning_rate if replay.kind is Kind.UPDATE else 1.0
    values = weight.new_zeros(len(victims), count, weight.shape[2])
    known = torch.zeros(len(victims), count, dtype=torch.bool, device=weight.device)
    for row in range(len(victims)):
        parameters = sighting.parameters if sighting.same else {n: t[row] for n, t in sighting.parameters.items()}
        linear = LinearLayer.of(replay.task, parameters, layer)
        reading = read_batch(augment(weight[row], bias[row]), linear, count, _DRAWS, rng, public=public)
        labels = reading.labels
        if bool(reading.certified.all()) and not bool((labels >= 0).all()):
            labels = labels_by_head(
                linear, reading.seen, {name: sent[row] / rate for name, sent in sighting.sent.items()}
            )
        targets = None if victims.targets is None else victims.targets[row].argmax(1).cpu()
        order = _slots(labels, reading.certified, targets)
        values[row, order] = reading.seen[:, :-1].to(values)
        known[row, order] = reading.certified.to(known.device)
    if not bool(known.any()):
        return None
    scale = (values.square() * known[..., None]).sum((1, 2)) / (known.sum(1) * values.shape[2]).clamp(min=1)
    spread = torch.where(known, _BLUR * scale.sqrt()[:, None], _UNKNOWN).clamp_min(1e-12)
    values = torch.where(known[..., None], values, 0.0)
    return Features(layer, values[:, None].expand(-1, readings, -1, -1), spread[..., None].expand_as(values))


def _slots(labels: Tensor, certified: Tensor, targets: Tensor | None) -> Tensor:
    """Return the place of each example in a batch whose labels are known: one with its label, if one is left.

    Example:
        >>> _slots(torch.tensor([2, 0, -1]), torch.tensor([True, True, False]), torch.tensor([0, 1, 2])).tolist()
        [2, 0, 1]
    """
    free = list(range(len(labels)))
    places, wanted = [-1] * len(labels), [] if targets is None else targets.tolist()
    for example, label in enumerate(labels.tolist()):
        fitting = [slot for slot in free if wanted[slot : slot + 1] == [label]] if certified[example] else []
        if fitting:
            places[example] = fitting[0]
            free.remove(fitting[0])
    return torch.tensor([place if place >= 0 else free.pop(0) for place in places])


def _read_batch(
    victims: Victims, coordinates: Coordinates, layer: str, weight: Tensor, readings: int, rng: Stream
) -> Features | None:
    task, targets, sighting = victims.replay.task, victims.targets, victims.sightings[0]
    count, classes = victims.replay.examples, task.classes
    if targets is None or count >= classes:
        return None
    solutions = []
    for row in range(len(victims)):
        parameters = sighting.parameters if sighting.same else {n: t[row] for n, t in sighting.parameters.items()}
        head, shift = (parameters[f"head.{part}"].double() for part in ("weight", "bias"))
        z = torch.randn(readings * count, coordinates.width, generator=rng).to(victims.device)
        examples = coordinates.decode(z, targets[row].repeat(readings, 1)).clamp(0, 1)
        with torch.no_grad():
            seen = layer_inputs(task, parameters, examples, layer).double()
            starts = nn.functional.linear(seen, head, shift).view(readings, count, classes)
        # A message that is not finite has no features: its search starts from zeros; the others are not affected.
        solutions.append(
            _solve(weight[row].double().nan_to_num(0.0, 0.0, 0.0), head, shift, targets[row].double(), starts)
        )
    values = torch.stack(solutions)
    scale = values.square().mean((1, 2, 3)).sqrt()
    return Features(layer, values.float(), (_BLUR * scale)[:, None].expand(-1, values.shape[-1]).float())


def _solve(gradient: Tensor, head: Tensor, shift: Tensor, labels: Tensor, starts: Tensor) -> Tensor:
    """Return the features by each start, (readings, examples, features); damped Gauss-Newton in the logits."""
    readings, count, classes = starts.shape

    def features(logits: Tensor) -> Tensor:
        inverse: Tensor = torch.linalg.pinv((logits.softmax(-1) - labels).mT / count, rtol=1e-12)
        return inverse @ gradient

    def residual(logits: Tensor) -> Tensor:
        return (features(logits.view(count, classes)) @ head.T + shift - logits.view(count, classes)).flatten()

    mapped, slopes = torch.func.vmap(residual), torch.func.vmap(torch.func.jacrev(residual))
    logits, damping = starts.flatten(1), starts.new_full((readings,), 1e-3)
    left = mapped(logits)
    for _ in range(_STEPS):
        jacobian = slopes(logits)
        square = jacobian.mT @ jacobian + damping[:, None, None] * torch.eye(
            count * classes, dtype=starts.dtype, device=starts.device
        )
        step = torch.linalg.solve(square, -(jacobian.mT @ left[..., None]))[..., 0]
        residuals = mapped(logits + step)
        better = residuals.norm(dim=1) < left.norm(dim=1)
        logits, left = (
            torch.where(better[:, None], logits + step, logits),
            torch.where(better[:, None], residuals, left),
        )
        damping = torch.where(better, damping / 5, damping * 4).clamp(1e-14, 1e8)
        if bool((left.norm(dim=1) < _SOLVED * 1e-3).all()):
            break
    values = torch.func.vmap(features)(logits.view(readings, count, classes))
    # Readings that solve nothing are replaced by the best of the others.
    rest = left.norm(dim=1)
    best: Tensor = values[rest.argmin()]
    return torch.where((rest < _SOLVED)[:, None, None], values, best)
