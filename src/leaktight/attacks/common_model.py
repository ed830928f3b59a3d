"""The common model ranks the guesses of different attacks without the truth, by how likely each makes a message."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.attacks.guarded_lbfgs import SearchGuardedLBFGS
from leaktight.attacks.hypotheses import Hypotheses, guess_hypotheses
from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.objective import EXAMPLES, LOGITS, Objective, floors
from leaktight.attacks.search_engine import Named, Phase, Problem, SearchEngine, SearchSettings
from leaktight.attacks.truth import objective_at_truth
from leaktight.channels import deviations
from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.threat import View
from leaktight.priors import Prior

SECRET_EVALUATIONS = 40
"""How many evaluations the search for the sender's secrets takes; the guess stays fixed."""
SURE_LOGIT = 10.0


class CommonModel:
    """The posterior of examples under the known channel and a prior.

    Guesses of different attacks minimise different things. Under one model each has one number, minus the logarithm of
    its posterior up to a constant: what an attacker who has them all would choose by. Of several outcomes that an
    example may have had the best is taken, and secrets of the sender are searched while the guess stays fixed.

    Args:
        view: what the attacker sees; a defence that it does not know is taken for none.
        prior: what it believes examples to look like.
        rng: where the draws come from.
    """

    def __init__(self, view: View, prior: Prior, rng: Stream) -> None:
        known = view if view.defence is not None else dataclasses.replace(view, defence=Undefended())
        attack = GradientMatching(distance="likelihood", prior=prior, box=True, labels="auto", initial="prior")
        self.exchanges = view.exchanges()
        self._rng = rng
        self._groups: list[tuple[Objective, list[tuple[int, ...]]]] = []
        for places, victims in attack.cases(known, self.exchanges, rng):
            self._groups.append((attack.objective(victims, known), places))

    def score(self, inputs: Sequence[Tensor | None], labels: Sequence[Tensor | None]) -> Tensor:
        """Return minus the log posterior of a guess for each message; infinite where there is no guess.

        Args:
            inputs: for each message the guessed examples, or None.
            labels: their labels, or None for those that are read off the message.
        """
        scores = torch.full((len(self.exchanges),), math.inf)
        for objective, places in self._groups:
            guessed = [(row, place) for row, (place,) in enumerate(places) if _fits(inputs[place], objective)]
            if not guessed:
                continue
            rows = torch.tensor([row for row, _ in guessed], device=objective.device)
            points, hypotheses = _points(
                objective, rows, [inputs[at] for _, at in guessed], [labels[at] for _, at in guessed], self._rng
            )
            values = _lowest(objective, points, rows, hypotheses)
            for (_, place), value in zip(guessed, values.tolist(), strict=True):
                scores[place] = value if math.isfinite(value) else math.inf
        return scores

    def explains(self, inputs: Sequence[Tensor | None], labels: Sequence[Tensor | None]) -> list[bool]:
        """Return for each message whether a guess gives it up to rounding, so that nothing is left to search for.

        Never where anything is random or secret: a guess that leaves no more than the noise may still be far from the
        best one.
        """
        explained = [False] * len(self.exchanges)
        for objective, places in self._groups:
            channel = objective.replay.channel
            if channel.private_task or channel.outcomes or not channel.complete:
                continue
            for row, (place,) in enumerate(places):
                guess = inputs[place]
                if guess is not None and _fits(guess, objective):
                    explained[place] = _is_exact(objective, row, guess, labels[place])
        return explained

    def at_truth(self, truth: Sequence[GroundTruth]) -> Tensor:
        """Return the score of the true examples, for metrics.

        It is NaN if there are secrets: a short search may miss them.
        """
        values = torch.full((len(truth),), math.nan)
        for objective, places in self._groups:
            for victim, (place,) in enumerate(() if objective.victims.secrets else places):
                values[place] = objective_at_truth(objective, victim, [truth[place]])
        return values


@torch.no_grad()
def _is_exact(objective: Objective, row: int, inputs: Tensor, labels: Tensor | None) -> bool:
    """Return whether a guess gives every entry of a message in which nothing is random, up to rounding."""
    sighting = objective.victims.sightings[0]
    message, targets = sighting.evidence(row), _targets(objective, torch.tensor([row]), [labels])
    if targets is None:
        return False
    belief = sighting.replay(message.parameters, inputs.to(objective.device), targets[0], {}, None, message.sent)
    masks = belief.masks.values()
    if not all(belief.noise_of(name).is_none for name in message.sent) or not all(
        m.ranked.is_none and m.sent.is_none for m in masks
    ):
        return False
    beside = deviations(belief, message.sent)
    exact = floors({name: tensor[None] for name, tensor in message.sent.items()}, sighting.replay)
    return all(float(part.max()) <= float(exact[name]) for name, part in beside.items() if part.numel())


def _fits(inputs: Tensor | None, objective: Objective) -> bool:
    """Return whether there is a guess of as many examples as are behind the message."""
    return inputs is not None and len(inputs) == objective.replay.examples


def _targets(objective: Objective, rows: Tensor, labels: Sequence[Tensor | None]) -> Tensor | None:
    """Return label probabilities of some victims: the guess's own, else those that were read, else None."""
    known, classes = objective.victims.targets, objective.replay.task.classes
    targets = []
    for row, own in zip(rows.tolist(), labels, strict=True):
        if (
            own is not None
            and not own.is_floating_point()
            and own.shape == (objective.replay.examples,)
            and own.min() >= 0
        ):
            targets.append(F.one_hot(own.to(objective.device), classes).float())
        elif known is not None:
            targets.append(known[row])
        else:
            return None
    return torch.stack(targets)


def _points(
    objective: Objective, rows: Tensor, inputs: Sequence[Tensor | None], labels: Sequence[Tensor | None], rng: Stream
) -> tuple[Tensor, Hypotheses]:
    """Return where in the search each guess lies, and what it takes for true beside that."""
    victims = objective.victims
    targets = _targets(objective, rows, labels)
    blank = torch.zeros(len(rows), objective.replay.examples, objective.replay.task.classes, device=objective.device)
    given = blank if targets is None else targets
    guesses = torch.stack([guess.to(objective.device) for guess in inputs if guess is not None])
    z = torch.stack([objective.coordinates.encode(*pair) for pair in zip(guesses, given, strict=True)])
    logits = SURE_LOGIT * given if victims.targets is None else None
    secrets = {name: tensor[rows] for name, tensor in victims.secrets.items()}
    every = guess_hypotheses(victims, 1, rng)
    choices = [None if choice is None else choice[rows] for choice in every.choices]
    return objective.pack(z, logits, secrets), Hypotheses(
        choices, every.heard[rows], None if logits is not None else given
    )


def _lowest(objective: Objective, points: Tensor, owners: Tensor, hypotheses: Hypotheses) -> Tensor:
    """Return the objective at these points, with the best outcomes, and the best secrets that a short search finds."""
    problem = objective.problem(hypotheses)
    rows = torch.arange(len(points), device=points.device)
    if problem.revise is not None:
        problem = dataclasses.replace(problem, rows=problem.revise(points, owners, problem.rows))
    free = objective.layout.width - sum(
        math.prod(objective.layout.shapes[name]) for name in (EXAMPLES, LOGITS) if name in objective.layout.shapes
    )
    if not free:
        return SearchEngine(problem, SearchSettings(SearchGuardedLBFGS(), (Phase(0),))).values(points, owners, rows)
    fixed, start = points[:, :-free], points[:, -free:]
    search = SearchSettings(SearchGuardedLBFGS(history=10), (Phase(SECRET_EVALUATIONS),))
    own = {name: _rows_of(tensors, owners) for name, tensors in problem.own.items()}
    return (
        SearchEngine(_freeze_first(dataclasses.replace(problem, own=own), fixed), search)
        .run(start, len(points))
        .objective
    )


def _rows_of(tensors: Named, rows: Tensor) -> dict[str, Tensor]:
    return {name: tensor[rows] for name, tensor in tensors.items()}


def _freeze_first(problem: Problem, fixed: Tensor) -> Problem:
    """Return the problem with the first unknowns of each row fixed."""

    def objective(point: Tensor, shared: Named, own: Named, row: Named, weight: Tensor) -> Tensor:
        return problem.objective(torch.cat([row["held"], point]), shared, own, row, weight)

    return dataclasses.replace(
        problem, objective=objective, rows={**problem.rows, "held": fixed}, revise=None, project=None
    )


def model_of(view: View, prior: Prior, rng: Stream) -> CommonModel | None:
    """Return the common model of a view; None where its messages cannot be replayed."""
    try:
        return CommonModel(view, prior, rng)
    except Refusal:
        return None
