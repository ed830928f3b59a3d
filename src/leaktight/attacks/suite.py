"""The suite: the attacks of the strongest attacker, in order, and which of them fit a view."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping

from leaktight.attacks.analytic import Analytic
from leaktight.attacks.clustering import Clustering
from leaktight.attacks.completion import Completion
from leaktight.attacks.direction import Direction
from leaktight.attacks.gradient_norm import GradientNorm
from leaktight.attacks.label_attack import ALL, CUT, LabelAttack
from leaktight.attacks.label_posterior import LabelPosterior
from leaktight.attacks.learned_inverter import LearnedInverter
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.optimiser import SearchAdam
from leaktight.attacks.search_presets import SEARCHES
from leaktight.attacks.spectral import Spectral
from leaktight.attacks.surrogate import Surrogate
from leaktight.core.attack import Attack
from leaktight.core.channel import Channel
from leaktight.core.message import Kind
from leaktight.core.threat import View
from leaktight.priors import Generic, Prior, Public
from leaktight.priors.public import LEAST

POSTERIOR, JOINED, SCALE_FREE = "posterior", "posterior-joined", "scale-free"
FREE_LOSS, PUBLIC_HEAD = "free-loss", "public-head"
MOST_REMEMBERED, MOST_SEARCHED = 1 << 19, 1 << 22
"""How many numbers a search may have that remembers its last steps, and one that does not: a few gigabytes each."""
LEAST_MESSAGES, MOST_LEARNED = 200, 2.0
"""The fewest messages that an inverter learns from, and the largest factor on its usual number: cost is cubic."""


@functools.cache
def whole_suite() -> dict[str, Attack]:
    """Return every attack of the suite by name, cheap ones first; of label attacks the one that answers first."""
    posterior, by_direction = SEARCHES[POSTERIOR], SEARCHES["ats2021-adam-cosine"]
    by_gradient = (
        LabelPosterior(),
        GradientNorm(rare="unknown", layer=ALL),
        Direction(layer=ALL),
        Clustering(layer=ALL),
    )
    labels = (*by_gradient, Spectral(), Completion(), Surrogate())
    return {
        "analytic": Analytic(),
        "learned_inverter": LearnedInverter(),
        POSTERIOR: posterior,
        JOINED: posterior.model_copy(update={"messages": "joined", "preset": JOINED}),
        FREE_LOSS: SEARCHES[FREE_LOSS],
        PUBLIC_HEAD: SEARCHES[PUBLIC_HEAD],
        SCALE_FREE: by_direction.model_copy(update={"iterations": 600, "preset": SCALE_FREE}),
        **{attack.kind: attack for attack in labels},
    }


def fitting_attacks(suite: Mapping[str, Attack], view: View) -> tuple[dict[str, Attack], dict[str, str]]:
    """Return the attacks of a suite that fit a view, in order, and why others that would fit cannot be tried.

    Args:
        suite: the attacks by name.
        view: what the attacker sees: gradients and updates, from which examples are read, or cut gradients, from which
            labels are.
    """
    about = "inputs" if view.exchanges() else "scores"
    channel = Channel(complete=False) if view.defence is None else view.defence.channel(view.task)
    chosen, untried = dict[str, Attack](), dict[str, str]()
    for name, attack in suite.items():
        if about not in attack.claims or not _CONDITIONS.get(name, _always)(view, channel):
            continue
        missing = sorted(attack.needs - view.grants)
        if missing:
            untried[name] = f"the threat model does not grant {', '.join(missing)}"
        elif _numbers(view) > _most(attack):
            untried[name] = f"{_numbers(view)} numbers behind one message are too many for a search"
        else:
            chosen[name] = _seat(attack, view)
    return chosen, untried


def _numbers(view: View) -> int:
    """Return how many numbers the examples behind one message have, at most."""
    behind = (int(exchange.sent.facts.get("examples", 1)) for exchange in view.exchanges())
    return math.prod(view.task.shape) * max(behind, default=0)


def _most(attack: Attack) -> float:
    """Return how many numbers an attack can search for."""
    if not isinstance(attack, GradientMatching):
        return math.inf
    return MOST_SEARCHED if isinstance(attack.descent, SearchAdam) else MOST_REMEMBERED


def prior_of(view: View) -> Prior:
    """Return the prior of an attacker with this view: public examples, if it has enough of them."""
    return Public() if view.auxiliary is not None and len(view.auxiliary) >= LEAST else Generic()


def _seat(attack: Attack, view: View) -> Attack:
    """Return an attack as a view allows it: with the best prior; at the cut alone if the seat has no bottom model."""
    if isinstance(attack, GradientMatching) and isinstance(attack.prior, Generic):
        return attack.model_copy(update={"prior": prior_of(view)})
    if isinstance(attack, LabelAttack) and attack.layer == ALL and not view.memory.get("seen"):
        return attack.model_copy(update={"layer": CUT})
    return attack


def scale(suite: Mapping[str, Attack], factor: float) -> dict[str, Attack]:
    """Return a suite with so many times the effort: iterations of searches, messages of an inverter.

    Args:
        suite: the attacks by name.
        factor: above 0; below 1 is cheaper.

    Example:
        >>> scale(whole_suite(), 0.5)["posterior"].iterations
        150
    """
    return {name: _scale(attack, factor) for name, attack in suite.items()}


def _scale(attack: Attack, factor: float) -> Attack:
    if isinstance(attack, GradientMatching | Surrogate):
        return attack.model_copy(update={"iterations": max(1, round(attack.iterations * factor))})
    if isinstance(attack, LearnedInverter):
        return attack.model_copy(
            update={"messages": max(LEAST_MESSAGES, round(attack.messages * min(factor, MOST_LEARNED)))}
        )
    return attack


def _is_repeated(view: View, channel: Channel) -> bool:
    """Return whether some sender is known to have sent several messages about the same examples."""
    whole = [
        message.sender
        for message in view.of(Kind.GRADIENT, Kind.UPDATE)
        if message.facts.get("owned") == message.facts.get("examples") and message.facts.get("local_steps", 1) == 1
    ]
    return max(Counter(whole).values(), default=0) > 1


def _always(view: View, channel: Channel) -> bool:
    return True


_CONDITIONS: dict[str, Callable[[View, Channel], bool]] = {
    JOINED: _is_repeated,
    FREE_LOSS: lambda view, channel: channel.private_task,
    PUBLIC_HEAD: lambda view, channel: channel.private_task,
    SCALE_FREE: lambda view, channel: not channel.complete,
}
"""When an attack is worth trying; the others are wherever the threat model allows it."""
