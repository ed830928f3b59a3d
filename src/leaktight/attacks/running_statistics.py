"""Running statistics: a batch's means and variances, read off the buffers of batch norm that are sent along."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import Tensor

from leaktight.core.attack import Attack, GuessedStatistics, Principle
from leaktight.core.errors import Refusal
from leaktight.core.message import layer_of
from leaktight.core.random import Stream
from leaktight.core.task import Task
from leaktight.core.threat import Exchange, View


class RunningStatistics(Attack):
    r"""Read the mean and the variance of a batch at every batch norm off what its running statistics became.

    A client in training mode moves each running statistic r by its momentum m towards the batch's own s, so that after
    k steps

    .. math:: r' = (1 - m)^k \, r + \sum_{i=1}^k m (1 - m)^{k-i} s_i, \qquad
        \hat s = r + \frac{r' - r}{1 - (1 - m)^k}.

    For one step \(\hat s\) is exactly the batch's mean, or its variance with n - 1 in the denominator, channel by
    channel and layer by layer; for several steps it is their mean by these weights. At the first layer that is a
    statistic of the private images themselves. Of a sum over participants it is the mean of theirs.

    What it needs: messages with running statistics, and for an update the local steps. It models no defence: noise on
    the buffers is noise in the answer.

    Example:
        >>> RunningStatistics().simple, sorted(RunningStatistics.claims)
        (True, ['statistics'])

    Differs from the paper: it is the first half of what Yin et al. and Huang et al. do, by itself. They search for
    images whose statistics are these; here every search by likelihood does that (`gradient_matching`).

    References: Yin et al. 2021, See through Gradients, Eq. 8; Huang et al. 2021, Evaluating Gradient Inversion Attacks
        and Defenses in Federated Learning, section 3.1.
    """

    kind: Literal["running_statistics"] = "running_statistics"
    claims: ClassVar[frozenset[str]] = frozenset({"statistics"})
    goals: ClassVar[tuple[str, ...]] = ("read off the statistics of batch normalisation",)
    principle: ClassVar[Principle] = "algebra"
    simple: ClassVar[bool] = True

    def run(self, view: View, rng: Stream) -> GuessedStatistics:
        """Answer every message in view."""
        exchanges = view.exchanges()
        if not tells_statistics(view):
            raise Refusal(
                "Running statistics can be read only where batch norm is in training mode and sends them along. No "
                "message in view holds any."
            )
        return GuessedStatistics(
            keys=tuple(exchange.sent.key for exchange in exchanges),
            values=tuple(read_statistics(view.task, exchange) for exchange in exchanges),
            blind=tuple(_blind(view.task, exchange) for exchange in exchanges),
        )


def tells_statistics(view: View) -> bool:
    """Return whether every message in view holds running statistics, and somebody sent one."""
    exchanges = view.exchanges()
    return bool(exchanges) and all(_find_statistics(view.task, exchange) for exchange in exchanges)


def _find_statistics(task: Task, exchange: Exchange) -> dict[str, float]:
    """Return the running statistics of a message by wire name, each with its layer's momentum."""
    norms = task.model.batch_norms()
    momenta = {task.wire(name): norms[layer_of(name)].momentum for name in task.model.running()}
    return {
        name: momentum
        for name, momentum in momenta.items()
        if name is not None and name in exchange.sent.tensors and momentum > 0
    }


def read_statistics(task: Task, exchange: Exchange) -> dict[str, Tensor]:
    """Return the mean and the variance of a batch that a message's running statistics tell, by wire name.

    Raises:
        Refusal: it is an update, and nobody says of how many steps.
    """
    facts = exchange.sent.facts
    if "local_steps" not in facts and exchange.sent.kind == "update":
        raise Refusal(
            "The steps behind an update must be known to read its running statistics. Add `local_steps` to `knows` in "
            "the threat model."
        )
    steps = int(facts.get("local_steps", 1))
    before = _blind(task, exchange)
    return {
        name: before[name] + exchange.sent.tensors[name] / (1 - (1 - momentum) ** steps)
        for name, momentum in _find_statistics(task, exchange).items()
    }


def _blind(task: Task, exchange: Exchange) -> dict[str, Tensor]:
    """Return the running statistics that were handed out: what anybody would guess a batch's to be."""
    own = task.public_running()
    return {name: exchange.parameters.get(name, own[name]) for name in _find_statistics(task, exchange)}
