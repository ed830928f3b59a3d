"""Gradient matching: search for examples whose gradient, or update, is the one observed."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field, SerializeAsAny, model_validator
from torch import Tensor

from leaktight.attacks.descent import AdamDescent, Descent
from leaktight.attacks.distance import DISTANCES, DistanceName
from leaktight.attacks.engine import Engine, Found, Search, Victims
from leaktight.attacks.initial import InitialName, class_means
from leaktight.attacks.label import read_labels
from leaktight.attacks.outcome import outcomes_of
from leaktight.attacks.replay import Replay, replayable
from leaktight.attacks.secret import drawn
from leaktight.core.attack import Attack, Reconstruction
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue, Refusal, did_you_mean
from leaktight.core.message import Tensors, layer_of
from leaktight.core.random import Stream
from leaktight.core.threat import Exchange, Knows, View
from leaktight.defences.layer_guard import LayerGuard
from leaktight.defences.withhold import Withhold


class GradientMatching(Attack):
    """Reconstruct examples by minimising distance(gradient(candidate), observed) + tv * total variation(candidate).

    What it needs: the parameters that were sent, the message that came back, and for an update the local steps. All victims are
    searched at once; the best restart is chosen by the objective, which the attacker can see.

    Args:
        distance: `l2`, `l1`, `cosine` over the whole gradient, or `layer_cosine` averaged over tensors.
        entries: `all` of a message, or only those that were `sent`: not exactly zero. Stronger against a defence that leaves entries out
            (top-k sharing, pruning), whose zeros say nothing of the examples; weaker where a zero is a unit that was not active.
        layers: match the tensors of these layers only, by wire name without its last part; empty for all that came. Labels that are
            `read` still come off the last layer.
        descent: `adam`, `sgd` or `lbfgs`.
        iterations: at least 1; each is `inner` evaluations with L-BFGS.
        initial: `randn`, `uniform`, `zeros`, `pattern`, or `class_means` of public examples, for labels that are given or read first.
        restarts: candidates per victim, at least 1. More is stronger.
        total_variation: weight of the image prior, at least 0.
        colours: whether the prior looks across colour channels too.
        sign: follow the sign of the gradient: `none`, `hard`, or `soft` (tanh, less and less bent over the search).
        box: keep pixels in [0, 1].
        decay: learning rate schedule: `none`, `steps` (a tenth at 3/8, 5/8, 7/8), or `cosine` with 50 warm-up steps.
        labels: `given` by the threat model, `joint`, as soft labels that are searched with the examples, or `read` off the last layer first.
        models_defence: play the participant with its defence, and search for its secrets and the examples jointly. Stronger
            against a defence that keeps something to itself, or that changes its examples and can say how; against any other it
            changes nothing.
        outcomes: what to do about the draws of a defence that changes examples: match the `expected` message, or search once for
            `each` outcome and keep what matches best, which takes as much longer.
        stop: the objective at which a victim is done.
        preset: whose settings these are.

    An attacker that models the defence lets it make the participant's own task (`on_task`) with a `Local` of the attacker's. The
    parameters that stay home and the floating tensors in memory (a private head, codes, keys) are then unknowns like pixels: each
    candidate starts at a draw of its own, and each secret is searched in units of the spread of these draws, because in their
    natural units the search mends the secrets and leaves the image as it is. Codes of +1 and -1 are not held to these values.

    A defence that changes examples before it trains on them may say what it can make of one (`outcomes`). Candidates then stand for
    examples as they were before, and go through these changes on the way to the message; so the guess is to be scored against the
    raw batch. Where outcomes differ the expected message is that of no draw, so that no candidate matches it well. Where one can
    stand for another (no flip of a flipped image for a flip) both match, and nothing tells which was drawn. `each` outcome is taken
    for all examples behind a message at once, whereas participants draw for every example anew: with larger batches, or several
    local steps, the true combination is among those tried only by luck. Changes expect pixels in [0, 1]: candidates without `box`
    look to them as if cut.

    What else the defence does to a batch, a gradient or a message is not replayed: this attack does not model noise, and a defence that leaves
    no secret behind and changes no example (noise, pruning) is attacked as if it were not known.

    Example:
        >>> GradientMatching(distance="l2", iterations=10)
        GradientMatching(kind='gradient_matching', distance='l2', ..., preset='')

    Differs from the paper: victims are searched together, which changes no victim's result but for float order, unless the
    defence is modelled and keeps secrets: their unit is the spread over the draws for all victims, so that a victim's search
    depends a little on how many others there are. L-BFGS stops a victim at its own minimum, where the sources go on evaluating it. The best point of a search is answered, not the last.
    Geiping's and the transformation search's attacks are given the labels by their sources; their presets read them off the
    last layer, unless `labels = "given"` is set. The breaching presets weigh total variation by 0.1, their 0.2 at half scale.

    References: Zhu et al. 2019, Deep Leakage from Gradients; Zhao et al. 2020, iDLG; Geiping et al. 2020, Inverting Gradients;
        Fan et al. 2020, Algorithm 5, whose attacker does not know that a private loss exists; Gao et al. 2021, section 6, which
        leaves an attacker who knows the transformations as future work.
    """

    kind: Literal["gradient_matching"] = "gradient_matching"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs", "labels"})
    distance: DistanceName = "cosine"
    entries: Literal["all", "sent"] = "all"
    layers: tuple[str, ...] = ()
    descent: SerializeAsAny[Descent] = AdamDescent()
    iterations: int = Field(4800, ge=1)
    initial: InitialName = "randn"
    restarts: int = Field(1, ge=1)
    total_variation: float = Field(0.0, ge=0)
    colours: bool = False
    sign: Literal["none", "hard", "soft"] = "none"
    box: bool = False
    decay: Literal["none", "steps", "cosine"] = "none"
    labels: Literal["given", "joint", "read"] = "read"
    models_defence: bool = False
    outcomes: Literal["expected", "each"] = "expected"
    stop: float = Field(0.0, ge=0)
    preset: str = ""

    @property
    def needs(self) -> frozenset[Knows]:
        """Labels, if they are to be given; the defence, if it is to be modelled; public examples, if their means are the start."""
        asked = {
            Knows.LABELS: self.labels == "given",
            Knows.DEFENCE: self.models_defence,
            Knows.AUXILIARY: self.initial == "class_means",
        }
        return frozenset(thing for thing, needed in asked.items() if needed)

    @model_validator(mode="after")
    def _starts_from_labels(self) -> GradientMatching:
        if self.initial == "class_means" and self.labels == "joint":
            raise InvalidValue(
                f"The `labels` of {self.kind} must be `given` or `read` to start at `class_means`. Got `joint` instead."
            )
        return self

    def run(self, view: View, rng: Stream) -> Reconstruction:
        """Search the examples behind every gradient and update in view."""
        exchanges = view.exchanges()
        found: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        for places, victims in self.cases(view, exchanges, rng):
            result = self._searched(victims, rng)
            for row, place in enumerate(places):
                found[place] = (result.inputs[row], _hard(result, row), result.objective[row])
        order = [found[place] for place in range(len(exchanges))]
        return Reconstruction(
            keys=tuple(exchange.sent.key for exchange in exchanges),
            inputs=tuple(one[0] for one in order),
            labels=None if self.labels == "given" else tuple(one[1] for one in order),
            objective=torch.stack([one[2] for one in order]),
        )

    def models(self, defence: Defence) -> bool:
        """What is left out whole is not matched, so that is modelled always; secrets and changed examples if they are searched jointly."""
        if isinstance(defence, LayerGuard):
            return self.adapts_to(defence.guard)
        return isinstance(defence, Withhold) or (self.models_defence and replayable(defence))

    def cases(self, view: View, exchanges: Sequence[Exchange], rng: Stream) -> Iterator[tuple[list[int], Victims]]:
        """Yield what can be searched at once: the places of exchanges of one form, and their messages as the engine takes them."""
        if not exchanges:
            raise Refusal("Gradient matching needs a shared gradient or update. The view holds none.")
        if not all(exchange.sent.tensors for exchange in exchanges):
            raise Refusal("Gradient matching needs a tensor to match. A message in view holds none, because all were withheld.")
        for replay, places in _groups(view, exchanges).items():
            yield places, self.victims(replay, [exchanges[place] for place in places], view, rng)

    def _searched(self, victims: Victims, rng: Stream) -> Found:
        """Search once, or once for each outcome of the defence."""
        replay = victims.replay
        if self.outcomes == "expected" or not replay.changes:
            return Engine(victims, self.search()).run(rng)
        alone = [dataclasses.replace(replay, changes=(outcome,)) for outcome in replay.changes]
        return Found.best([Engine(dataclasses.replace(victims, replay=one), self.search()).run(rng) for one in alone])

    def victims(self, replay: Replay, group: Sequence[Exchange], view: View, rng: Stream) -> Victims:
        """Return messages of one form as the engine takes them."""
        parameters = group[0].parameters
        same = all(_equal(parameters, exchange.parameters) for exchange in group)
        if not same:
            parameters = {name: torch.stack([exchange.parameters[name] for exchange in group]) for name in parameters}
        secrets: Tensors = {}
        targets = self._targets(replay, group, view, rng)
        replay = dataclasses.replace(replay, names=self._matched(replay.names))
        if self.models_defence:
            replay, secrets = self._played(replay, group, view, rng)
        return Victims(
            replay=replay,
            parameters=parameters,
            same=same,
            wanted={name: torch.stack([exchange.sent.tensors[name] for exchange in group]) for name in replay.names},
            targets=targets,
            secrets=secrets,
            starts=self._starts(targets, view, rng),
        )

    def _starts(self, targets: Tensor | None, view: View, rng: Stream) -> Tensor | None:
        if self.initial != "class_means" or targets is None:
            return None
        if view.auxiliary is None or not len(view.auxiliary):
            raise Refusal(
                "A search can start at class means only where public examples are known. Add `auxiliary` to `knows` in the threat model."
            )
        return class_means(view.auxiliary, targets.argmax(-1), self.restarts, rng)

    def _matched(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tensors of the chosen layers."""
        if not self.layers:
            return names
        layers = dict.fromkeys(layer_of(name) for name in names)
        for layer in self.layers:
            if layer not in layers:
                raise Refusal(
                    f"Layer `{layer}` cannot be matched: the message holds no tensor of it. {did_you_mean(layer, layers)}"
                )
        return tuple(name for name in names if layer_of(name) in self.layers)

    def _played(self, replay: Replay, group: Sequence[Exchange], view: View, rng: Stream) -> tuple[Replay, Tensors]:
        """Return the senders as the defence makes them, and secrets of the attacker's own for every candidate."""
        if view.defence is None:
            raise Refusal(
                "A defence can be modelled only by an attacker who knows it. Add `defence` to `knows` in the threat model."
            )
        owned = int(group[0].sent.facts.get("owned", replay.examples))
        played, secrets = drawn(view.defence, replay.task, owned, len(group) * self.restarts, rng)
        changes = outcomes_of(view.defence, replay.task.shape)
        return dataclasses.replace(replay, task=played.task, memory=played.memory, changes=changes), secrets

    def _targets(self, replay: Replay, group: Sequence[Exchange], view: View, rng: Stream) -> Tensor | None:
        if self.labels == "joint":
            return None
        if self.labels == "given":
            labels = [_given(view, exchange) for exchange in group]
        else:
            labels = [read_labels(replay, exchange.parameters, exchange.sent.tensors, rng) for exchange in group]
        return F.one_hot(torch.stack(labels), replay.task.classes).float()

    def search(self) -> Search:
        """Return the settings as the engine takes them."""
        return Search(
            distance=DISTANCES[self.distance],
            entries=self.entries,
            descent=self.descent,
            evaluations=self.iterations * self.descent.evaluations,
            start=self.initial,
            restarts=self.restarts,
            tv=self.total_variation,
            tv_colours=self.colours,
            sign=self.sign,
            box=self.box,
            decay=self.decay,
            stop=self.stop,
        )


def _groups(view: View, exchanges: Sequence[Exchange]) -> dict[Replay, list[int]]:
    """Put messages of one form together: only those can be searched at once."""
    groups: dict[Replay, list[int]] = defaultdict(list)
    for place, exchange in enumerate(exchanges):
        groups[Replay.of(view.task, exchange.sent)].append(place)
    return groups


def _given(view: View, exchange: Exchange) -> Tensor:
    if exchange.sent.key not in view.labels:
        raise Refusal(
            f"Nobody knows the labels behind what {exchange.sent.sender} sent. Let them be `read` or searched (`joint`)."
        )
    return view.labels[exchange.sent.key]


def _equal(one: Tensors, other: Tensors) -> bool:
    return one is other or (one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one))


def _hard(found: Found, row: int) -> Tensor:
    return found.targets[row].argmax(-1)
