"""The suite: which attacks the strongest attacker has, in the order in which it tries them, and which of them fit a view."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping

from leaktight.attacks.analytic import Analytic
from leaktight.attacks.search_presets import SEARCHES
from leaktight.core.attack import Attack
from leaktight.core.channel import Channel
from leaktight.core.message import Kind
from leaktight.core.threat import View

JOINED, FREE_LOSS, SCALE_FREE = "posterior-joined", "free-loss", "scale-free"


@functools.cache
def whole_suite() -> dict[str, Attack]:
    """Return every attack of the suite by name, in the order in which they are tried: cheap ones first."""
    posterior, by_direction = SEARCHES["posterior"], SEARCHES["ats2021-adam-cosine"]
    return {
        "analytic": Analytic(),
        "posterior": posterior,
        JOINED: posterior.model_copy(update={"messages": "joined", "preset": JOINED}),
        FREE_LOSS: posterior.model_copy(update={"loss": "free", "preset": FREE_LOSS}),
        SCALE_FREE: by_direction.model_copy(update={"iterations": 600, "preset": SCALE_FREE}),
    }


def fitting(suite: Mapping[str, Attack], view: View) -> tuple[dict[str, Attack], dict[str, str]]:
    """Return the attacks of a suite that fit a view, in order, and why others that would fit cannot be tried.

    Args:
        suite: the attacks by name.
        view: what the attacker sees.
    """
    channel = Channel(complete=False) if view.defence is None else view.defence.channel(view.task)
    chosen, untried = dict[str, Attack](), dict[str, str]()
    for name, attack in suite.items():
        missing = sorted(attack.needs - view.granted)
        if not _CONDITIONS.get(name, _always)(view, channel):
            continue
        if missing:
            untried[name] = f"the threat model does not grant {', '.join(missing)}"
        else:
            chosen[name] = attack
    return chosen, untried


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
    SCALE_FREE: lambda view, channel: not channel.complete,
}
"""When an attack is worth trying; the others are wherever the threat model allows it."""
