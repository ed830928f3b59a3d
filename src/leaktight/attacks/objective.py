"""The objective of gradient matching: the fit to the messages, the prior of the examples, and further terms."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from leaktight.attacks.hypotheses import Hypotheses
from leaktight.attacks.replay import Replay
from leaktight.attacks.search_engine import MEMORY, Named, Problem
from leaktight.attacks.term import Candidate, Evidence, GroupTerm, Match, Term
from leaktight.attacks.victims import Victims
from leaktight.core.message import Tensors
from leaktight.priors import Coordinates


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where in a row's vector each unknown lies: one after the other, in this order.

    Args:
        shapes: the shape of each unknown, by name.

    Example:
        >>> layout = Layout({"pixels": (1, 2), "logits": (3,)})
        >>> {name: part.tolist() for name, part in layout.unpack(torch.arange(5)).items()}
        {'pixels': [[0, 1]], 'logits': [2, 3, 4]}
    """

    shapes: Mapping[str, tuple[int, ...]]

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return sum(map(math.prod, self.shapes.values()))

    def pack(self, unknowns: Mapping[str, Tensor]) -> Tensor:
        """Return the unknowns (rows, *shape) as vectors (rows, width)."""
        return torch.cat([unknowns[name].reshape(-1, math.prod(shape)) for name, shape in self.shapes.items()], dim=1)

    def unpack(self, points: Tensor) -> dict[str, Tensor]:
        """Return the unknowns by name from vectors with any leading dimensions."""
        parts = torch.split(points, [math.prod(shape) for shape in self.shapes.values()], dim=-1)
        return {
            name: part.reshape((*points.shape[:-1], *shape))
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }


EXAMPLES, LOGITS = "examples", "logits"
# The standard deviation that an exact entry is given, as a share of the largest entry of its tensor. Float noise is
# less; the rest keeps the objective's numbers and slopes within what single precision can carry.
FLOOR = 1e-4
# Batch norm cancels what is added before it, so that the gradient of a bias there is nothing but rounding: below this
# share of the largest entry of a message, an entry says nothing.
CANCELLED = 1e-2


class Objective:
    """What is minimised for some victims: sum of terms over one row's unknowns.

    Args:
        victims: who is searched for.
        coordinates: the prior's, in which examples are searched.
        match: what compares a candidate's message with the one that was seen.
        terms: further terms of a row, and terms that see all rows of a victim.
        box: whether pixels of images are kept in [0, 1]: by clipping where coordinates are pixels, else by a penalty.
    """

    def __init__(
        self,
        victims: Victims,
        coordinates: Coordinates,
        match: Match,
        terms: Sequence[Term] = (),
        *,
        box: bool = False,
    ) -> None:
        self.victims, self.coordinates, self.match = victims, coordinates, match
        self.box = box and len(victims.replay.task.shape) == 3
        self.terms = [term for term in terms if not isinstance(term, GroupTerm)]
        self.groups = [term for term in terms if isinstance(term, GroupTerm)]
        self.replay, self.device = victims.replay, victims.device
        self.layout = self._layout()
        self.steps = coordinates.steps().to(self.device)
        self.spread = {name: _spread(tensor) for name, tensor in victims.secrets.items()}

    def problem(self, hypotheses: Hypotheses) -> Problem:
        """Return what the engine minimises."""
        shared: dict[str, object] = {}
        own: dict[str, object] = {}
        rows: dict[str, object] = {}
        for number, sighting in enumerate(self.victims.sightings):
            (shared if sighting.same else own)[f"parameters {number}"] = dict(sighting.parameters)
            own[f"wanted {number}"] = dict(sighting.wanted)
            own[f"buffers {number}"] = {
                name: sighting.sent[name] for name in sighting.sent.keys() - sighting.replay.task.wires()
            }
            own[f"floor {number}"] = floors(sighting.wanted, sighting.replay)
            choice = hypotheses.choices[number]
            if choice is not None:
                rows[f"choice {number}"] = choice
        if hypotheses.targets is not None:
            rows["targets"] = hypotheses.targets
        if any(choice is not None for choice in hypotheses.choices):
            rows["heard"] = hypotheses.heard
        return Problem(
            objective=self._value,
            shared=shared,
            own=own,
            rows=rows,
            group=self._group if self.groups else None,
            revise=self._revise if "heard" in rows else None,
            project=self._clip if self.box and not self.coordinates.whitened else None,
            bytes_per_row=self.bytes_per_row(),
        )

    def unpack(self, point: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Return the coordinates, examples, label probabilities and secrets that the point of one row stands for."""
        unknowns = self.layout.unpack(point)
        z = unknowns.pop(EXAMPLES) * self.steps
        if targets is None:
            targets = unknowns.pop(LOGITS).softmax(-1)
        secrets = {name: tensor * self.spread[name] for name, tensor in unknowns.items()}
        return z, self.coordinates.decode(z, targets), targets, secrets

    def pack(self, z: Tensor, logits: Tensor | None, secrets: Tensors) -> Tensor:
        """Return points from coordinates, logits if labels are searched for, and secrets, each (rows, ...)."""
        z = z.to(self.device) / self.steps
        unknowns = {EXAMPLES: z, **({} if logits is None else {LOGITS: logits})}
        units = {name: tensor / self.spread[name] for name, tensor in secrets.items()}
        return self.layout.pack({name: tensor.to(self.device) for name, tensor in {**unknowns, **units}.items()})

    def encode(self, inputs: Tensor) -> Tensor:
        """Return the coordinates of examples (rows, examples, *shape) in natural units, by victim."""
        targets = self._targets_of(len(inputs))
        pairs = zip(inputs.to(self.device), targets, strict=True)
        return torch.stack([self.coordinates.encode(examples, target) for examples, target in pairs])

    def messages(self, points: Tensor, owners: Tensor) -> dict[str, Tensor]:
        """Return what the senders would have sent at these points, one row for each; `owners` are the rows' victims."""
        sighting, known = self.victims.sightings[0], self.victims.targets

        def message(point: Tensor, parameters: Tensors, wanted: Tensors, targets: Tensor | None) -> dict[str, Tensor]:
            _, inputs, probabilities, secrets = self.unpack(point, targets)
            return dict(sighting.replay(parameters, inputs, probabilities, secrets, None, wanted).means)

        parameters = sighting.parameters
        if not sighting.same:
            parameters = {name: tensor[owners] for name, tensor in parameters.items()}
        wanted = {name: tensor[owners] for name, tensor in sighting.wanted.items()}
        places = (0, None if sighting.same else 0, 0, None if known is None else 0)
        with torch.no_grad():
            messages: dict[str, Tensor] = torch.func.vmap(message, in_dims=places)(
                points, dict(parameters), wanted, None if known is None else known[owners]
            )
        return messages

    def _targets_of(self, rows: int) -> Tensor:
        known = self.victims.targets
        if known is None:
            return torch.zeros(rows, self.replay.examples, self.replay.task.classes, device=self.device)
        return known.repeat_interleave(rows // len(known), 0)

    def _layout(self) -> Layout:
        """Return the unknowns of a row: examples, label logits if labels are searched for, and the sender's secrets."""
        logits = {LOGITS: (self.replay.examples, self.replay.task.classes)} if self.victims.targets is None else {}
        secrets = {name: tuple(tensor.shape[1:]) for name, tensor in self.victims.secrets.items()}
        return Layout({EXAMPLES: (self.replay.examples, self.coordinates.width), **logits, **secrets})

    def _value(self, point: Tensor, shared: Named, own: Named, row: Named, weight: Tensor) -> Tensor:
        """Return the objective of one row."""
        z, inputs, targets, secrets = self.unpack(point, row.get("targets"))
        misfits, evidence = [], []
        for number, sighting in enumerate(self.victims.sightings):
            parameters = (shared if sighting.same else own)[f"parameters {number}"]
            wanted = own[f"wanted {number}"]
            evidence.append(Evidence(parameters, wanted, own[f"buffers {number}"]))
            choice = row.get(f"choice {number}")
            belief = sighting.replay(parameters, inputs, targets, secrets, choice, wanted)
            misfits.append(
                self.match(belief, wanted, own[f"floor {number}"]) + surprise(sighting.replay, choice, number)
            )
        if "heard" in row:
            misfits = [misfit * heard for misfit, heard in zip(misfits, row["heard"].unbind(), strict=True)]
        return weight * torch.stack(misfits).sum() + self.plausibility(
            z, Candidate(inputs, targets, secrets, tuple(evidence))
        )

    def _revise(self, points: Tensor, owners: Tensor, rows: Named) -> Named:
        """Assume for each example the outcome that fits best where a row is now, and listen to all messages.

        Outcomes that last are the same in all messages, and are chosen by all of them together.
        """
        revised = {**rows, "heard": torch.ones_like(rows["heard"])}
        numbers = range(len(self.victims.sightings))
        for together in [tuple(numbers)] if self.replay.channel.lasting else [(number,) for number in numbers]:
            choice, count = rows[f"choice {together[0]}"], len(self.replay.channel.outcomes)
            for example in range(self.replay.examples):
                choices = []
                for outcome in range(count):
                    changed = choice.clone()
                    changed[:, example] = nn.functional.one_hot(torch.tensor(outcome), count).to(choice)
                    choices.append(changed)
                misfits = torch.stack(
                    [
                        torch.stack(
                            [self._misfits(number, points, owners, rows.get("targets"), changed) for number in together]
                        ).sum(0)
                        for changed in choices
                    ]
                )
                choice = torch.stack(choices)[misfits.argmin(0), torch.arange(len(points), device=points.device)]
            revised |= {f"choice {number}": choice for number in together}
        return revised

    def _misfits(self, number: int, points: Tensor, owners: Tensor, targets: Tensor | None, choice: Tensor) -> Tensor:
        """Return how badly each row fits one message, under these outcomes."""
        sighting = self.victims.sightings[number]

        def misfit(
            point: Tensor, parameters: Tensors, wanted: Tensors, floors: Tensors, target: Tensor | None, chosen: Tensor
        ) -> Tensor:
            _, inputs, probabilities, secrets = self.unpack(point, target)
            belief = sighting.replay(parameters, inputs, probabilities, secrets, chosen, wanted)
            return self.match(belief, wanted, floors) + surprise(sighting.replay, chosen, number)

        wanted = {name: tensor[owners] for name, tensor in sighting.wanted.items()}
        exact = floors(wanted, sighting.replay)
        parameters = (
            dict(sighting.parameters) if sighting.same else {n: t[owners] for n, t in sighting.parameters.items()}
        )
        places = (0, None if sighting.same else 0, 0, 0, None if targets is None else 0, 0)
        # In pieces that fit into memory, as the engine's own evaluations.
        size = max(1, MEMORY // self.bytes_per_row())
        with torch.no_grad():
            misfits: Tensor = torch.func.vmap(misfit, in_dims=places, chunk_size=size)(
                points, parameters, wanted, exact, targets, choice
            )
        return misfits.nan_to_num(math.inf)

    def plausibility(self, z: Tensor, candidate: Candidate) -> Tensor:
        """Return what a candidate costs whatever its message is."""
        terms = [self.coordinates.penalty(z, candidate.inputs), *(term(candidate) for term in self.terms)]
        if self.box and self.coordinates.whitened:
            terms.append(outside(candidate.inputs))
        return torch.stack(terms).sum()

    def _group(self, points: Tensor, owners: Tensor) -> Tensor:
        targets = None if self.victims.targets is None else self.victims.targets[owners]
        inputs = torch.func.vmap(
            lambda point, target: self.unpack(point, target)[1], in_dims=(0, None if targets is None else 0)
        )(points, targets)
        return torch.stack([term.compare(inputs, owners) for term in self.groups]).sum(0)

    def _clip(self, points: Tensor) -> Tensor:
        """Keep pixels in [0, 1], where coordinates are pixels in another unit."""
        unknowns = self.layout.unpack(points)
        shape = self.replay.task.shape
        low, high = (
            self.coordinates.encode(torch.full((1, *shape), bound, device=self.device), torch.zeros(1, 1))
            for bound in (0.0, 1.0)
        )
        unknowns[EXAMPLES] = unknowns[EXAMPLES].clamp(low, high)
        return self.layout.pack(unknowns)

    def bytes_per_row(self) -> int:
        """Estimate what one row needs: a dozen copies of the gradients and activations."""
        model = self.replay.task.model
        parameters = sum(parameter.numel() for parameter in model.parameters())
        activations = _activations(model, self.replay.task.shape, self.device) * self.replay.examples
        replays = [sighting.replay for sighting in self.victims.sightings]
        steps = sum(replay.steps.count if replay.update == "unrolled" else 1 for replay in replays)
        per_example = self.replay.examples if self.replay.channel.example else 1
        return 48 * steps * (parameters * per_example + activations)


def floors(wanted: Tensors, replay: Replay) -> dict[str, Tensor]:
    """Return for each tensor and victim the standard deviation that exact entries are given.

    Args:
        wanted: what was sent, stacked.
        replay: how the senders are modelled.
    """
    largest = {name: tensor.reshape(len(tensor), -1).abs().amax(1) for name, tensor in wanted.items()}
    if replay.task.model.batch_norms():
        whole = torch.stack(list(largest.values())).amax(0)
        largest = {name: torch.maximum(size, CANCELLED * whole) for name, size in largest.items()}
    return {name: FLOOR * torch.where(size > 0, size, 1.0) for name, size in largest.items()}


def surprise(replay: Replay, choice: Tensor | None, number: int = 0) -> Tensor | float:
    """Return minus the log probability of the outcomes that are assumed, (examples, outcomes).

    Those that last were drawn once: they count at the first message of a sender, and `number` says which this is.
    """
    if choice is None or (number and replay.channel.lasting):
        return 0.0
    weights = torch.tensor([outcome.weight for outcome in replay.channel.outcomes], device=choice.device)
    return -(choice * weights.log()).sum()


def outside(inputs: Tensor) -> Tensor:
    """Return what pixels outside [0, 1] cost: a twentieth of the range is one standard deviation."""
    return (inputs - inputs.clamp(0, 1)).square().sum() / (2 * 0.05**2)


def _spread(draws: Tensor) -> float:
    """Return the standard deviation of a secret's draws: in such units a search moves small and large secrets alike."""
    return draws.double().std(correction=0).item() or 1.0


def _activations(model: nn.Module, shape: tuple[int, ...], device: torch.device) -> int:
    """Count the numbers that a forward pass over one example makes."""
    total = 0

    def count(module: nn.Module, inputs: object, output: object) -> None:
        nonlocal total
        total += output.numel() if isinstance(output, Tensor) else 0

    hooks = [module.register_forward_hook(count) for module in model.modules() if not list(module.children())]
    with torch.no_grad():
        model(torch.zeros(1, *shape, device=device))
    for hook in hooks:
        hook.remove()
    return total
