"""The similarity path: how close an attack's candidates come to the observed gradient in each layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor

from leaktight.attacks.distance import cosine
from leaktight.attacks.hypotheses import guess_hypotheses
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.search_engine import SearchEngine
from leaktight.attacks.victims import Victims
from leaktight.core.message import Tensors, layer_of
from leaktight.core.metric import Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream, stream
from leaktight.core.run import Run
from leaktight.core.threat import ThreatModel, View
from leaktight.statistics.interval import bootstrap


class SimilarityPath(Probe):
    r"""Watch a gradient matching attack: compare its candidates' gradient with the observed one during its search.

    For layer l, candidate \(x^*\) and the message g that was sent, over the weights and biases of the layer as one
    vector,

    .. math:: \frac{\langle \nabla_l(x^*), g_l \rangle}{\lVert \nabla_l(x^*) \rVert \, \lVert g_l \rVert} .

    Readings are `similarity_after_100` and so on, of each layer that was sent, the mean over messages: the number is
    that of the evaluations before, `each` has the messages in order. Nothing private is read: it is what the attacker
    itself sees. A message whose search has come to rest stays where it was; a candidate without a finite gradient
    counts as 0. Intervals are bootstrapped over messages.

    Args:
        attack: whose candidates, without restarts; behind each message by itself, and by a distance.
        threat: where the attacker sits and what it knows.
        moments: at how many moments, evenly spread from the first to the last evaluation, at least 2.

    Example:
        >>> from leaktight.testing import toy_run
        >>> probe = SimilarityPath(attack=GradientMatching(iterations=20), moments=3)
        >>> found = probe.read(toy_run(batch_size=1), stream(0, "path")).readings
        >>> [(reading.name, reading.layer) for reading in found][:3]
        [('similarity_after_0', 'body.1'), ('similarity_after_0', 'head'), ('similarity_after_10', 'body.1')]

    Differs from the paper: it shows two shallow and two deep layers of one search, without saying which; here all
    layers, over messages.

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, Fig. 6.
    """

    kind: Literal["similarity_path"] = "similarity_path"
    attack: GradientMatching
    threat: ThreatModel = ThreatModel()
    moments: int = Field(11, ge=2)

    @field_validator("attack")
    @classmethod
    def _has_one_path(cls, attack: GradientMatching) -> GradientMatching:
        if attack.restarts > 1 or attack.messages != "each" or attack.distance == "likelihood":
            raise ValueError(
                "must search once for each message, by a distance. Got restarts, joined messages or a likelihood "
                "instead."
            )
        return attack

    def read(self, run: Run, rng: Stream) -> Finding:
        """Run the attack and look at it on its way."""
        self.attack.check(self.threat.knows)
        view = self.threat.view(run)
        similarities: dict[tuple[int, str], list[Tensor]] = {}
        for _, victims in self.attack.cases(view, view.exchanges(), rng):
            for place, values in self._path(victims, view, rng).items():
                similarities.setdefault(place, []).append(values)
        return Finding(
            tuple(
                _reading(place, torch.cat(similarities[place]), rng)
                for place in sorted(similarities, key=lambda one: one[0])
            )
        )

    def _path(self, victims: Victims, view: View, rng: Stream) -> Mapping[tuple[int, str], Tensor]:
        """Return the similarity of all victims, by the moment and the layer."""
        search = self.attack.search()
        moments = [round(search.evaluations * step / (self.moments - 1)) for step in range(self.moments)]
        points: dict[int, Tensor] = {}

        def watch(evaluation: int, owners: Tensor, now: Tensor) -> None:
            if evaluation in moments:
                points.setdefault(
                    evaluation, torch.empty(len(victims), now.shape[1], device=now.device).fill_(torch.nan)
                )
                points[evaluation][owners] = now

        objective = self.attack.objective(victims, view)
        problem = objective.problem(guess_hypotheses(victims, 1, rng))
        SearchEngine(problem, search, watch).run(self.attack.starts(objective, 1, rng), len(victims))
        path: dict[tuple[int, str], Tensor] = {}
        last = points[0]
        for moment in dict.fromkeys(moments):
            last = torch.where(points[moment].isnan(), last, points[moment]) if moment in points else last
            sent = objective.messages(last, torch.arange(len(victims), device=last.device))
            path |= {(moment, layer): values for layer, values in _by_layer(sent, victims.sightings[0].wanted).items()}
        return path


def _by_layer(candidate: Tensors, observed: Tensors) -> dict[str, Tensor]:
    """Return the cosine of each row in each layer, from the first to the last."""
    layers = dict.fromkeys(map(layer_of, observed))
    own = {layer: [name for name in observed if layer_of(name) == layer] for layer in layers}
    each = torch.func.vmap(lambda one, other: 1 - cosine(one, other))
    return {
        layer: each({n: candidate[n] for n in names}, {n: observed[n] for n in names}) for layer, names in own.items()
    }


def _reading(place: tuple[int, str], values: Tensor, rng: Stream) -> Reading:
    moment, layer = place
    name, values = f"similarity_after_{moment}", values.double().nan_to_num(0.0).cpu()
    low, high = bootstrap(values, stream(rng.initial_seed(), "interval", name, layer))
    return Reading(
        name=name,
        value=values.mean().item(),
        low=low,
        high=high,
        n=len(values),
        leaks="high",
        layer=layer,
        each=tuple(values.tolist()),
    )
