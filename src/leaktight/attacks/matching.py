"""Gradient matching: search for examples whose gradient, or update, is the one observed."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field, SerializeAsAny, model_validator
from torch import Tensor

from leaktight.attacks.distance import DISTANCES, Distance, DistanceName
from leaktight.attacks.features import head_weight
from leaktight.attacks.hypotheses import count_hypotheses, guess_hypotheses
from leaktight.attacks.label_reading import can_read_labels, read_labels
from leaktight.attacks.objective import Objective
from leaktight.attacks.optimiser import SearchAdam, SearchOptimiser
from leaktight.attacks.private_state import PlayedParty, draw_secrets
from leaktight.attacks.replay import FEATURE_GRADIENT, SURROGATE, Replay
from leaktight.attacks.search_engine import Phase, SearchEngine, SearchResult, SearchSettings
from leaktight.attacks.starting_point import (
    InitialName,
    class_means,
    draw_feature_gradients,
    draw_masks,
    initial_points,
    start_at_features,
)
from leaktight.attacks.term import Match, Term
from leaktight.attacks.truth import objective_at_truth
from leaktight.attacks.victims import Sighting, Victims
from leaktight.channels import negative_log_likelihood
from leaktight.core.attack import Attack, Reconstruction
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue, Refusal, did_you_mean
from leaktight.core.message import Kind, Tensors, layer_of
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.threat import Exchange, Knows, View
from leaktight.priors import Coordinates, Flat, Prior, network_units

LIKELIHOOD = "likelihood"
START_SPREAD = 0.1
"""How far from the middle of a prior a search starts, in standard deviations."""


class GradientMatching(Attack):
    r"""Reconstruct examples by minimising misfit(candidate's message, observed message) + prior(candidate) + terms.

    What it needs: the parameters that were sent, the message that came back, and for an update the local steps. All
    victims are searched at once; the best restart is chosen by the objective, which the attacker can see.

    With `distance = "likelihood"` the attacker knows the defence, and the misfit is minus the log likelihood of the
    message under the defence's channel (`Defence.channel`). What is clipped, masked or noisy in the real message is so
    in the candidate's. What the sender keeps secret is searched jointly with the examples. Where several things may
    have become of an example, each is tried. With a normalised prior no weight is left to choose: the objective is the
    posterior of the examples. Only the floor under exact entries and the box are set by hand; secrets and labels that
    are searched have no prior. A defence that states nothing is attacked as if it were off.

    Args:
        distance: `likelihood`; or, of an attacker who models no defence, `l2`, `l1`, `cosine` over the whole gradient,
            or `layer_cosine` averaged over tensors.
        messages: search behind `each` message by itself, or behind all messages of a sender that are known to be about
            the same examples, `joined`: those of a participant with one batch.
        update: an update of several steps is `unrolled`, or treated as one step at a `surrogate` point on its way,
            which is searched jointly: cheaper by the number of steps, and less exact.
        loss: `known`; or `free`: the gradient of the loss at the features is one more unknown, so that nothing needs to
            be known about a private loss. Then what the body sent is matched; and what a linear head sent, where the
            attacker knows the defence and can tell that it leaves that head the plain gradient, or so many times it.
        layers: match the tensors of these layers only, by wire name without its last part; empty for all that came.
            Labels that are `read` still come off the last layer.
        prior: what examples look like; it owns the coordinates in which they are searched.
        terms: what else is minimised.
        descent: `adam`, `sgd`, `lbfgs` or `guarded_lbfgs`.
        iterations: at least 1; each is `inner` evaluations with L-BFGS.
        initial: `randn`, `uniform`, `zeros`, `pattern` in the network's units, `class_means` of public examples, for
            labels that are given or read first; `prior`: near the middle of a prior that has one; or `features`: at
            examples that give the features which can be read off the gradient of the first linear layer; if there are
            several candidates, one starts at the prior.
        restarts: candidates per victim, at least 1. More is stronger.
        phases: in how many stretches to search. After each, half of the candidates of a victim are dropped, those with
            the higher objective.
        widen: how many times wider than it is the law of the messages is taken in the first stretch; it narrows evenly
            to 1 in the last.
        sign: follow the sign of the gradient: `none`, `hard`, or `soft` (tanh, less and less bent over the search).
        box: keep pixels of images in [0, 1]: by clipping where coordinates are pixels, else by a penalty on those
            outside.
        decay: learning rate schedule: `none`, `steps` (a tenth at 3/8, 5/8, 7/8), or `cosine` with 50 warm-up steps.
        labels: `given` by the threat model, `joint`, as soft labels that are searched with the examples, `read` off the
            last layer first, or read if they can be and else searched, `auto`.
        stop: the distance at which a victim is done; not used with `likelihood`, whose level nobody knows before.
        settle: a candidate rests when ten evaluations lowered its objective by less than this; 0 for never.
        preset: whose settings these are.

    An attacker that models a private task lets the defence make the participant's own task (`on_task`) with a `Local`
    of the attacker's. The parameters that stay home and the floating tensors in memory (a private head, codes, keys)
    are then unknowns like pixels, one set for all messages of a sender: each candidate starts at a draw of its own, and
    each secret is searched in units of the spread of these draws: in their natural units the search would fit the
    secrets and leave the image as it is. Codes of +1 and -1 may take other values.

    Batch norm in training mode normalises candidates by their own batch, as it did the sender's. Running statistics
    that came along are matched by their law like every other tensor: exactly, unless a defence changed them; they fix
    the mean and the variance of each channel at each such layer. What dropout left of each example is searched jointly,
    as a share of each entry. Both with `likelihood`; presets of published sources know neither: their candidates meet
    dropout as it is on average.

    Where a defence changes examples before it trains on them, candidates stand for examples as they were before, so the
    guess is to be scored against the raw batch. Where one outcome can stand for another (no flip of a flipped image for
    a flip) both match, and nothing tells which was drawn.

    Example:
        >>> GradientMatching(distance="l2", iterations=10)
        GradientMatching(kind='gradient_matching', distance='l2', ..., preset='')

    Differs from the paper: victims are searched together, which changes no victim's result but for float order, unless
    the defence is modelled and keeps secrets: their unit is the spread over the draws for all victims, so that a
    victim's search depends a little on how many others there are. L-BFGS stops a victim at its own minimum, where the
    sources keep evaluating it. The answer is the best point of a search, not the last. Geiping's and the transformation
    search's attacks are given the labels by their sources; their presets read them off the last layer, unless
    `labels = "given"` is set. The breaching presets weigh total variation by 0.1, their 0.2 at half scale.

    References: Zhu et al. 2019, Deep Leakage from Gradients; Zhao et al. 2020, iDLG; Geiping et al. 2020, Inverting
        Gradients; Balunovic et al. 2022, Bayesian Framework for Gradient Leakage (the posterior); Zhu, Yao and Blaschko
        2023, Surrogate Model Extension; Yin et al. 2021, See through Gradients, and Huang et al. 2021, Evaluating
        Gradient Inversion Attacks and Defenses (batch norm statistics); Scheliga, Maeder and Seeland 2022, Dropout is
        NOT All You Need to Prevent Gradient Leakage (masks that are searched jointly); Fan et al. 2020, Algorithm 5,
        whose attacker does not know that a private loss exists; Gao et al. 2021, section 6, which leaves an attacker
        who knows the transformations as future work.
    """

    kind: Literal["gradient_matching"] = "gradient_matching"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs", "labels"})
    goals: ClassVar[tuple[str, ...]] = ("rebuild the examples", "read off the labels")
    distance: DistanceName | Literal["likelihood"] = "cosine"
    messages: Literal["each", "joined"] = "each"
    update: Literal["unrolled", "surrogate"] = "unrolled"
    loss: Literal["known", "free"] = "known"
    layers: tuple[str, ...] = ()
    prior: SerializeAsAny[Prior] = Flat()
    terms: tuple[SerializeAsAny[Term], ...] = ()
    descent: SerializeAsAny[SearchOptimiser] = SearchAdam()
    iterations: int = Field(4800, ge=1)
    initial: InitialName = "randn"
    restarts: int = Field(1, ge=1)
    phases: int = Field(1, ge=1)
    widen: float = Field(1.0, ge=1)
    sign: Literal["none", "hard", "soft"] = "none"
    box: bool = False
    decay: Literal["none", "steps", "cosine"] = "none"
    labels: Literal["given", "joint", "read", "auto"] = "read"
    stop: float = Field(0.0, ge=0)
    settle: float = Field(0.0, ge=0)
    preset: str = ""

    @property
    def needs(self) -> frozenset[Knows]:
        """Labels, if they are given; the defence, for its channel; public examples, for a prior or a start."""
        wanted = {
            Knows.LABELS: self.labels == "given",
            Knows.DEFENCE: self.distance == LIKELIHOOD,
            Knows.AUXILIARY: self.initial == "class_means" or self.prior.needs_public,
        }
        return frozenset(thing for thing, needed in wanted.items() if needed)

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
        answers: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        searched: list[tuple[Objective, list[tuple[int, ...]]]] = []
        for places, victims in self.cases(view, exchanges, rng):
            objective = self.objective(victims, view)
            inputs, labels, values = self._search(objective, rng)
            searched.append((objective, places))
            for row, about in enumerate(places):
                answers |= dict.fromkeys(about, (inputs[row], labels[row], values[row]))
        order = [answers[place] for place in range(len(exchanges))]
        return Reconstruction(
            keys=tuple(exchange.sent.key for exchange in exchanges),
            inputs=tuple(answer[0] for answer in order),
            labels=None if self.labels == "given" else tuple(answer[1] for answer in order),
            objective=torch.stack([answer[2] for answer in order]),
            judge=lambda truth: _at_truth(searched, truth),
        )

    def models(self, defence: Defence) -> bool:
        """Model every defence that states its channel, where the likelihood is what is minimised."""
        return self.distance == LIKELIHOOD and defence.states_channel

    @property
    def joins(self) -> bool:
        """Whether messages are searched together."""
        return self.messages == "joined"

    def cases(
        self, view: View, exchanges: Sequence[Exchange], rng: Stream
    ) -> Iterator[tuple[list[tuple[int, ...]], Victims]]:
        """Yield victims that can be searched at once, with the places of the messages about each."""
        if not exchanges:
            raise Refusal("Gradient matching needs a shared gradient or update. The view holds none.")
        if not all(exchange.sent.tensors for exchange in exchanges):
            raise Refusal(
                "Gradient matching needs a tensor to match. A message in view holds none, because all were withheld."
            )
        groups: dict[tuple[Replay, ...], list[tuple[int, ...]]] = defaultdict(list)
        for places in self._about_the_same(exchanges):
            groups[tuple(Replay.of(view.task, exchanges[place].sent) for place in places)].append(places)
        for replays, victims in groups.items():
            seen = [[exchanges[places[number]] for places in victims] for number in range(len(replays))]
            yield victims, self.victims(replays, seen, view, rng)

    def _about_the_same(self, exchanges: Sequence[Exchange]) -> list[tuple[int, ...]]:
        """Return the places of messages that are known to be about the same examples, together."""
        together: dict[object, list[int]] = defaultdict(list)
        for place, exchange in enumerate(exchanges):
            facts = exchange.sent.facts
            whole = (
                self.messages == "joined"
                and facts.get("owned") == facts["examples"]
                and facts.get("local_steps", 1) == 1
            )
            together[exchange.sent.sender if whole else place].append(place)
        return [tuple(places) for places in together.values()]

    def _search(self, objective: Objective, rng: Stream) -> tuple[Tensor, Tensor, Tensor]:
        """Return the examples, labels and objective of each victim's best candidate."""
        victims = objective.victims
        rows = self._rows(victims)
        starts = self.starts(objective, rows, rng)
        hypotheses = guess_hypotheses(victims, rows, rng, revised=self.phases > 1)
        result = SearchEngine(objective.problem(hypotheses), self.search(rows)).run(starts, len(victims))
        targets = None if hypotheses.targets is None else hypotheses.targets[result.rows]
        return *_answers(objective, result, targets), result.objective

    def _rows(self, victims: Victims) -> int:
        """Return how many candidates each victim has: at least one for each outcome of its examples, up to a limit."""
        return self.restarts * count_hypotheses([sighting.replay for sighting in victims.sightings])

    def objective(self, victims: Victims, view: View) -> Objective:
        """Return what is minimised."""
        task = victims.replay.task
        if self.prior.needs_public and (view.auxiliary is None or not len(view.auxiliary)):
            raise Refusal(
                f"The prior `{self.prior.kind}` is made of public examples. Add `auxiliary` to `knows` in the threat "
                "model."
            )
        coordinates: Coordinates = self.prior.coordinates(
            task.shape, task.model.normalise, view.auxiliary, task.classes
        )
        match = negative_log_likelihood if self.distance == LIKELIHOOD else _by_distance(DISTANCES[self.distance])
        return Objective(victims, coordinates, match, self.terms, box=self.box)

    def starts(self, objective: Objective, rows: int, rng: Stream) -> Tensor:
        """Return where the search starts, so many points for each victim."""
        victims, task = objective.victims, objective.replay.task
        total, examples = len(victims) * rows, objective.replay.examples
        if self.initial in ("prior", "features"):
            z = START_SPREAD * torch.randn(total, examples, objective.coordinates.width, generator=rng)
            z = start_at_features(objective, z.to(objective.device), rows, rng) if self.initial == "features" else z
        elif victims.starts is not None:
            z = objective.encode(victims.starts)
        else:
            units = initial_points(self.initial, total * examples, task.shape, rng).to(objective.device)
            shift, scale = (part.to(objective.device) for part in network_units(task.model.normalise, task.shape))
            z = objective.encode((units * scale + shift).view(total, examples, *task.shape))
        logits = torch.randn(total, examples, task.classes, generator=rng) if victims.targets is None else None
        return objective.pack(z, logits, victims.secrets)

    def victims(
        self, replays: Sequence[Replay], seen: Sequence[Sequence[Exchange]], view: View, rng: Stream
    ) -> Victims:
        """Return messages of one form as an objective takes them.

        Args:
            replays: how the senders are modelled, for each of a victim's messages.
            seen: for each of a victim's messages those of all victims.
            view: what else is known.
            rng: where the draws come from.
        """
        weight = self._head_weight(view)
        replays = [dataclasses.replace(replay, head_weight=weight) for replay in replays]
        targets = self._targets(replays[0], seen[0], view, rng)
        secrets: Tensors = {}
        if self.distance == LIKELIHOOD:
            replays, secrets = self._play(replays, seen[0], view, rng)
        if self.loss == "free" and any(replay.steps.count > 1 or replay.channel.example for replay in replays):
            raise Refusal(
                "A free loss is for the gradient of one step of which examples are not looked at one by one. "
                'Set `loss` to "known" for this message.'
            )
        replays = [
            dataclasses.replace(r, names=self._names_to_match(r), update=self._way(r), loss=self.loss) for r in replays
        ]
        sightings = tuple(_sighting(replay, group) for replay, group in zip(replays, seen, strict=True))
        victims = Victims(sightings, targets, secrets, self._starts(replays, targets, view, rng))
        return dataclasses.replace(victims, secrets={**secrets, **self._unknowns(victims, rng)})

    def _way(self, replay: Replay) -> Literal["unrolled", "surrogate"]:
        return self.update if replay.kind is Kind.UPDATE else "unrolled"

    def _unknowns(self, victims: Victims, rng: Stream) -> Tensors:
        """Return where the search for further unknowns starts."""
        rows, replay = len(victims) * self._rows(victims), victims.replay
        starts: dict[str, Tensor] = {}
        if replay.update == "surrogate":
            starts[SURROGATE] = torch.zeros(rows, device=victims.device)
        if replay.loss == "free" and replay.matches_body:
            starts[FEATURE_GRADIENT] = draw_feature_gradients(victims, rows, rng)
        if replay.loss == "known" and self.distance == LIKELIHOOD:
            starts |= draw_masks(victims, rows, rng)
        return starts

    def _starts(self, replays: Sequence[Replay], targets: Tensor | None, view: View, rng: Stream) -> Tensor | None:
        if self.initial != "class_means" or targets is None:
            return None
        if view.auxiliary is None or not len(view.auxiliary):
            raise Refusal(
                "A search can start at class means only where public examples are known. Add `auxiliary` to `knows` in "
                "the threat model."
            )
        # Rows go through the hypotheses in turn: each hypothesis gets every start.
        starts = class_means(view.auxiliary, targets.argmax(-1), self.restarts, rng)
        return starts.repeat_interleave(count_hypotheses(replays), 0)

    def _names_to_match(self, replay: Replay) -> tuple[str, ...]:
        """Return the tensors of the chosen layers.

        Running statistics of batch norm are matched by their law, so not by a distance, and not at a surrogate point,
        where batches are not told apart. With a free loss, these are only the body's, and those of a head with the
        public loss.
        """
        names = replay.names
        if self.distance != LIKELIHOOD or self._way(replay) == "surrogate":
            parameters = replay.task.wires()
            names = tuple(name for name in names if name in parameters)
        if self.loss == "free":
            parts = ("body.",) if replay.head_weight is None else ("body.", "head.")
            wires = {replay.task.wire(name) for name in replay.task.model.tensors() if name.startswith(parts)}
            names = tuple(name for name in names if name in wires)
            if not names:
                raise Refusal(
                    'A free loss is matched by the tensors of the body, and none came. Set `loss` to "known" for this '
                    "message."
                )
        if not self.layers:
            return names
        layers = dict.fromkeys(layer_of(name) for name in names)
        for layer in self.layers:
            if layer not in layers:
                raise Refusal(
                    f"Layer `{layer}` cannot be matched: the message holds no tensor of it. "
                    f"{did_you_mean(layer, layers)}"
                )
        return tuple(name for name in names if layer_of(name) in self.layers)

    def _play(
        self, replays: Sequence[Replay], group: Sequence[Exchange], view: View, rng: Stream
    ) -> tuple[list[Replay], Tensors]:
        """Return the senders as the defence makes them, and secrets of the attacker's own for every candidate."""
        if view.defence is None:
            raise Refusal(
                "A defence can be modelled only by an attacker who knows it. Add `defence` to `knows` in the threat "
                "model."
            )
        channel = view.defence.channel(view.task)
        replays = [dataclasses.replace(replay, channel=channel) for replay in replays]
        if not channel.private_task or self.loss == "free":
            return replays, {}
        owned = int(group[0].sent.facts.get("owned", replays[0].examples))
        rows = self.restarts * count_hypotheses(replays)
        played, secrets = draw_secrets(view.defence, view.task, owned, len(group) * rows, rng)
        return [dataclasses.replace(replay, task=played.task, memory=played.memory) for replay in replays], secrets

    def _head_weight(self, view: View) -> float | None:
        """Return by which factor the senders' head has the plain gradient, by playing one; 1 if nothing is known."""
        if self.distance != LIKELIHOOD or view.defence is None:
            return 1.0 if self.loss == "known" else None
        if self.loss == "known" and not view.defence.channel(view.task).private_task:
            return 1.0
        return head_weight(PlayedParty.of(view.defence, view.task, 1, stream(0, "head weight")).task)

    def _targets(self, replay: Replay, group: Sequence[Exchange], view: View, rng: Stream) -> Tensor | None:
        if self.labels == "joint" or (self.labels == "auto" and not can_read_labels(replay, group[0].sent.tensors)):
            return None
        if self.labels == "given":
            labels = [_known_labels(view, exchange) for exchange in group]
        else:
            labels = [read_labels(replay, exchange.parameters, exchange.sent.tensors, rng) for exchange in group]
        return F.one_hot(torch.stack(labels), replay.task.classes).float()

    def search(self, rows: int = 1) -> SearchSettings:
        """Return the settings as the engine takes them, for so many candidates of each victim."""
        evaluations = self.iterations * self.descent.evaluations
        share = evaluations // (self.phases + 1)
        phases = [
            Phase(share, self.widen ** (-2 * (1 - number / (self.phases - 1))), max(1, rows >> (number + 1)))
            for number in range(self.phases - 1)
        ]
        return SearchSettings(
            descent=self.descent,
            phases=(*phases, Phase(evaluations - sum(phase.evaluations for phase in phases))),
            sign=self.sign,
            decay=self.decay,
            stop=self.stop if self.distance != LIKELIHOOD else -math.inf,
            settle=self.settle,
        )


def _answers(objective: Objective, result: SearchResult, targets: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the examples and labels that points stand for."""
    each = [
        objective.unpack(point, None if targets is None else targets[row]) for row, point in enumerate(result.points)
    ]
    return torch.stack([unpacked[1] for unpacked in each]), torch.stack([unpacked[2].argmax(-1) for unpacked in each])


def _at_truth(searched: Sequence[tuple[Objective, list[tuple[int, ...]]]], truth: Sequence[GroundTruth]) -> Tensor:
    """Return the objective of the truth behind each message."""
    values = torch.full((len(truth),), math.nan)
    for objective, places in searched:
        for victim, about in enumerate(places):
            values[list(about)] = objective_at_truth(objective, victim, [truth[place] for place in about])
    return values


def _by_distance(distance: Distance) -> Match:
    """Compare what a candidate would have sent with what was seen, whatever the law."""
    return lambda belief, wanted, floor: distance(belief.means, wanted)


def _sighting(replay: Replay, group: Sequence[Exchange]) -> Sighting:
    """Return one message of each victim, stacked."""
    parameters = group[0].parameters
    same = all(_equal(parameters, exchange.parameters) for exchange in group)
    if not same:
        parameters = {name: torch.stack([exchange.parameters[name] for exchange in group]) for name in parameters}
    sent = {name: torch.stack([exchange.sent.tensors[name] for exchange in group]) for name in group[0].sent.tensors}
    return Sighting(replay, parameters, same, {name: sent[name] for name in replay.names}, sent)


def _known_labels(view: View, exchange: Exchange) -> Tensor:
    if exchange.sent.key not in view.labels:
        raise Refusal(
            f"Nobody knows the labels behind what {exchange.sent.sender} sent. Let them be `read` or searched "
            "(`joint`)."
        )
    return view.labels[exchange.sent.key]


def _equal(one: Tensors, other: Tensors) -> bool:
    return one is other or (one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one))
