"""Property inference: do the examples behind a message have something in common that nobody meant to share?"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.property_classifier import Family, fit, log_loss
from leaktight.attacks.property_party import PropertyParty
from leaktight.attacks.shadow import Moment, moments, shadow_messages
from leaktight.core.attack import Attack, Principle, PropertyScores
from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal, did_you_mean
from leaktight.core.message import Tensors
from leaktight.core.party import Party, Seat
from leaktight.core.random import Stream, draw, stream
from leaktight.core.run import MessageKey
from leaktight.core.task import Batch
from leaktight.core.threat import Exchange, Knows, View
from leaktight.defences.layer_guard import LayerGuard
from leaktight.defences.sealed import Sealed
from leaktight.defences.withhold import Withhold
from leaktight.learning.gradient_features import pick_entries, pool_layers
from leaktight.learning.schedule import draw_matched
from leaktight.statistics.auc import auc

MIXTURES = (1.0, 0.4, 0.6, 0.8)
"""Which share of the attacker's own batches with the property has it, in turn."""

JOINED = " + "
"""What stands between the names of layers that are taken together."""

Features = Callable[[Tensors], dict[str, Tensor]]


@dataclasses.dataclass(frozen=True)
class PreparedFeatures:
    """What a classifier learns from and is asked about: the attacker's own gradients, and messages.

    Args:
        keys: the messages.
        rows: which layers are taken together, by the name of a row of scores.
        known: features of its own gradients, by layer.
        positive: which of those have the property.
        unknown: features of the messages, by layer.
        seed: what the classifiers' randomness derives from.
        halves: which half of the public examples is behind each of its own gradients, 0 or 1.
        labels: how large a share of the examples behind each of them is of each class.
    """

    keys: tuple[MessageKey, ...]
    rows: dict[str | None, list[str]]
    known: dict[str, Tensor]
    positive: Tensor
    unknown: dict[str, Tensor]
    seed: int
    halves: Tensor
    labels: Tensor

    def scores(self, classifier: Family) -> PropertyScores:
        """Fit a classifier for each row and ask it about every message."""
        values = [self.score(classifier, layers, label or "") for label, layers in self.rows.items()]
        return PropertyScores(self.keys, torch.stack(values), tuple(self.rows))

    def score(self, classifier: Family, layers: Sequence[str], name: str) -> Tensor:
        """Fit a classifier to some layers together and ask it about every message; its draws derive from the name."""
        known, unknown = (_join(features, layers) for features in (self.known, self.unknown))
        return fit(classifier, known, self.positive, stream(self.seed, "classifier", name))(unknown)

    def cross_validate(self, classifier: Family, layers: Sequence[str], name: str) -> tuple[float, float]:
        """Return how well some layers together tell the attacker's own gradients from which it did not learn.

        Fitted to gradients of one half of its examples and asked about the other half's, and the other way round.

        Returns:
            The mean AUC, and minus the mean log loss, which tells apart what is told without a mistake.
        """
        rows, aucs, losses = _join(self.known, layers), [], []
        for half in (0, 1):
            own = self.halves == half
            rng = stream(self.seed, "held out", half, name)
            answers = fit(classifier, rows[~own], self.positive[~own], rng)(rows[own])
            aucs.append(auc(answers, self.positive[own]))
            losses.append(log_loss(answers, self.positive[own]))
        return sum(aucs) / 2, -sum(losses) / 2

    def choose(self, classifier: Family, rows: Mapping[str, Sequence[str]]) -> str:
        """Return of several sets of layers that which tells most of the attacker's own gradients, held out."""
        if len(rows) == 1:
            return next(iter(rows))
        worth = {name: self.cross_validate(classifier, layers, name) for name, layers in rows.items()}
        return max(worth, key=lambda name: worth[name])


class PropertyInference(Attack):
    r"""Tell whether any example behind a message has a private property, from gradients of the attacker's own.

    The attacker has public examples of which it knows who has the property. At all parameters \(\theta_t\) that it saw
    handed out it makes gradients of batches with and without it, of the size of the victims' batches, and fits a
    classifier to features of them:

    .. math:: \hat p = f(\phi(g)), \qquad
        f \text{ fitted to } \{(\phi(\nabla L(B_j; \theta_t)), [B_j \text{ has the property}])\}.

    It is then asked about the messages that answered \(\theta_t\). A layer is attacked by the features of that layer
    alone. In a mean of several participants' messages only one of them has the property, in the attacker's own as well.
    Updates are played step by step.

    Args:
        classifier: how it learns: `random_forest`, `network`, `logistic`, or `best` of the three on the attacker's own
            gradients.
        layers: `all` together; `each` by itself, all together, and of these what it makes of a whole message: that
            which tells most of its own gradients, held out; or the names of some, which are then taken together.
        gradients: how many gradients it learns from, at least 20, half of them with the property; more is stronger and
            slower. They are spread evenly over the parameters in view, at least 2 at each.
        mixed: of the batches with the property, a quarter is pure and of the others a share of 0.4, 0.6 or 0.8 has it;
            else all are pure. Mixed is stronger against victims whose batches are.
        models_defence: whether its own gradients go through the known defence, with noise and secrets of its own.
            Mostly stronger, as then it learns from what it is asked about; the more noise there is, the more gradients
            that takes.
        entries: learn from so many entries of each layer, drawn once, instead of pooled features; None for those.
        matched: whether its own batches with the property and without have labels alike; for victims whose batches
            have, as an attacker that could count labels would learn what is not there.
        active_weight: above 0 it takes a participant's seat while the model is trained, and adds so much of a second
            task to its messages, to tell who has the property, so that the shared features do (`PropertyParty`);
            0 follows the protocol.

    Example:
        >>> print(PropertyInference(classifier="best", layers="each"))
        property_inference(classifier='best', layers='each')

    Differs from the paper: It collects 16 gradients at each of some 3,000 rounds, from its own examples and the test
    set; here the number is a setting and all come from the public examples. It observes the sum of all others'
    gradients where here it is their mean, which features of unit length do not tell apart. Its batches are always
    mixed. `models_defence`, and updates of several steps, are ours. An active attacker's second head starts from
    zeros and takes steps of its own; under updates its second task is one step as long as all local ones.

    References:
        Melis et al., Exploiting Unintended Feature Leakage in Collaborative Learning, 2019 (passive and active property
        inference); Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021,
        sections 3.3 and 6.2, and Fig. 6 for `entries`.
    """

    kind: Literal["property_inference"] = "property_inference"
    claims: ClassVar[frozenset[str]] = frozenset({"property"})
    goals: ClassVar[tuple[str, ...]] = ("tell a private property",)
    principle: ClassVar[Principle] = "learned"
    classifier: Family = "random_forest"
    layers: Literal["all", "each"] | Annotated[tuple[str, ...], Field(min_length=1)] = "all"
    gradients: int = Field(400, ge=20)
    mixed: bool = True
    models_defence: bool = False
    entries: int | None = Field(None, ge=1)
    # Left out where it is off, so that settings of before it was there keep their keys.
    matched: bool = Field(False, exclude_if=lambda matched: not matched)
    active_weight: float = Field(0.0, ge=0, exclude_if=lambda weight: weight == 0)

    @property
    def active(self) -> bool:
        """Whether it takes its seat while the model is trained."""
        return self.active_weight > 0

    def take(self, seat: Seat) -> Party:
        """Return a participant with a second task, if it is active."""
        return PropertyParty(self.active_weight, seat) if self.active else seat.honest

    @property
    def needs(self) -> frozenset[Knows]:
        """Public examples; the defence, if it is to be modelled."""
        return frozenset({Knows.AUXILIARY, Knows.DEFENCE} if self.models_defence else {Knows.AUXILIARY})

    def models(self, defence: Defence) -> bool:
        """It models layers that are left out, and a defence that its own gradients go through.

        The parties that it plays have no past, so only a defence that says that it is `memoryless` is modelled.
        """
        if isinstance(defence, LayerGuard):
            return self.adapts_to(defence.guard)
        if isinstance(defence, Sealed | Withhold):
            return True
        return self.models_defence and defence.memoryless

    def run(self, view: View, rng: Stream) -> PropertyScores:
        """Learn from gradients of the attacker's own, and score every message in view."""
        prepared = self.prepare(view, rng)
        scores = prepared.scores(self.classifier)
        if self.layers != "each" or len(prepared.unknown) == 1:
            return scores
        together = JOINED.join(prepared.unknown)
        sets = {together: list(prepared.unknown), **{layer: [layer] for layer in prepared.unknown}}
        names = (None, together, *prepared.unknown)
        rows = dict(zip((together, *prepared.unknown), scores.values, strict=True))
        chosen = prepared.choose(self.classifier, sets)
        return PropertyScores(scores.keys, torch.stack([rows[chosen], *rows.values()]), names)

    def prepare(self, view: View, rng: Stream) -> PreparedFeatures:
        """Return features of the attacker's own gradients and of every message in view, for any classifier."""
        exchanges = view.exchanges()
        if not exchanges:
            raise Refusal(
                f"{self.kind} needs a shared gradient or update. The view from `{view.seat}` holds none; a participant "
                "can tell those of others at the stage `training`, if the server takes the plain mean and steps by "
                "updates or by SGD without momentum."
            )
        pool = _pool(view)
        seed = int(torch.randint(1 << 62, (), generator=rng))
        names = _common(exchanges)
        extract = self._features(names, seed)
        unknown = _stack(
            [extract({name: exchange.sent.tensors[name][None] for name in names}) for exchange in exchanges]
        )
        rows = self._rows(list(unknown))
        shadows = self._learn_features(view, moments(view, exchanges), pool, extract, stream(seed, "shadows"))
        known, positive, halves, labels = shadows
        keys = tuple(exchange.sent.key for exchange in exchanges)
        return PreparedFeatures(keys, rows, known, positive, unknown, seed, halves, labels)

    def _features(self, names: Sequence[str], seed: int) -> Features:
        """Return what makes features of stacked messages, by layer."""

        def extract(tensors: Tensors) -> dict[str, Tensor]:
            chosen = {name: tensors[name] for name in names}
            features = pool_layers(chosen) if self.entries is None else pick_entries(chosen, self.entries, seed)
            if not all(torch.isfinite(rows).all() for rows in features.values()):
                raise Refusal(
                    f"{self.kind} needs finite messages. There are others: the training run has diverged; take "
                    "smaller steps."
                )
            return features

        return extract

    def _rows(self, layers: list[str]) -> dict[str | None, list[str]]:
        """Return which layers are taken together in each row of scores, by the row's name."""
        if self.layers == "all":
            return {None: layers}
        if self.layers == "each":
            return {None: layers, **{layer: [layer] for layer in layers}}
        for layer in self.layers:
            if layer not in layers:
                raise Refusal(
                    f"Layer `{layer}` cannot be attacked: messages hold no tensor of it. {did_you_mean(layer, layers)}"
                )
        return {JOINED.join(self.layers): list(self.layers)}

    def _learn_features(
        self, view: View, seen: Sequence[Moment], pool: Batch, extract: Features, rng: Stream
    ) -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
        """Return features of the attacker's own gradients, which have the property, their halves and their labels."""
        pairs = max(len(seen), self.gradients // 2)
        shares = itertools.cycle(MIXTURES if self.mixed else (1.0,))
        parts = _halve(pool, rng)
        features, positive, halves, labels, drawn = [], list[bool](), list[int](), [], 0
        for number, moment in enumerate(seen):
            count = pairs // len(seen) + (number < pairs % len(seen))
            # So that each share of a mixture comes from both halves.
            turns = [(place + place // len(MIXTURES)) % 2 for place in range(drawn, drawn + count)]
            wanted = [*itertools.islice(shares, count), *([0.0] * count)]
            members = torch.stack(
                [
                    self._batch(moment, pool, parts[turn], share, rng)
                    for turn, share in zip(turns * 2, wanted, strict=True)
                ]
            )
            defence = view.defence if self.models_defence else None
            features += [extract(sent) for sent in shadow_messages(view.task, moment, pool, members, rng, defence)]
            positive += [True] * count + [False] * count
            halves += turns * 2
            labels.append(label_shares(pool.labels.cpu()[members], view.task.classes))
            drawn += count
        return _stack(features), torch.tensor(positive), torch.tensor(halves), torch.cat(labels)

    def _batch(self, moment: Moment, pool: Batch, part: tuple[Tensor, Tensor], share: float, rng: Stream) -> Tensor:
        """Draw the examples of one message: a share of the first participant's have the property."""
        total = moment.parties * moment.examples
        count = max(1, round(share * moment.examples)) if share else 0
        if self.matched:
            return draw_matched(*part, pool.labels.cpu(), count, total, rng)
        return torch.cat([draw(part[0], count, rng), draw(part[1], total - count, rng)])


def label_shares(labels: Tensor, classes: int) -> Tensor:
    """Return how large a share of each row of labels is of each class.

    Example:
        >>> label_shares(torch.tensor([[0, 0, 1, 2]]), 3).tolist()
        [[0.5, 0.25, 0.25]]
    """
    return torch.nn.functional.one_hot(labels.long(), classes).double().mean(-2)


def _halve(pool: Batch, rng: Stream) -> list[tuple[Tensor, Tensor]]:
    """Return two halves of the public examples, each as positions with the property and without.

    Of a kind with a single example both have it.
    """
    properties = pool.properties if pool.properties is not None else torch.zeros(len(pool))
    halves: list[list[Tensor]] = [[], []]
    for kind in (1, 0):
        members = (properties == kind).nonzero()[:, 0].cpu()
        shuffled = members[torch.randperm(len(members), generator=rng)]
        for half in (0, 1):
            halves[half].append(shuffled[half::2] if len(members) > 1 else members)
    return [(own, others) for own, others in halves]


def _pool(view: View) -> Batch:
    """Return the public examples, of which some have the property and some do not."""
    if view.auxiliary is None:
        raise Refusal(
            "property_inference needs public examples. The view holds none; add `auxiliary` to `knows` in the threat "
            "model."
        )
    if view.auxiliary.properties is None:
        raise Refusal(
            "property_inference needs public examples with a private property. The data has none; set "
            "`private_property` of the data."
        )
    share = view.auxiliary.properties.double().mean().item()
    if share in (0.0, 1.0):
        raise Refusal(
            f"property_inference needs public examples with the property and without. {'All' if share else 'None'} of "
            f"{len(view.auxiliary)} has it."
        )
    return view.auxiliary


def _common(exchanges: Sequence[Exchange]) -> list[str]:
    """Return the tensors that every message holds."""
    names = [name for name in exchanges[0].sent.tensors if all(name in exchange.sent.tensors for exchange in exchanges)]
    if not names:
        raise Refusal("property_inference needs a tensor that all messages hold. They have none in common.")
    return names


def _join(features: Mapping[str, Tensor], layers: Sequence[str]) -> Tensor:
    return torch.cat([features[layer] for layer in layers], dim=1)


def _stack(parts: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {layer: torch.cat([part[layer] for part in parts]) for layer in parts[0]}
