"""The strongest attacker: a fixed suite of attacks without settings, cheap ones first; one answer per message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from pydantic import SerializeAsAny
from torch import Tensor

from leaktight.attacks.common_model import CommonModel, model_of
from leaktight.attacks.played_channel import clean, play, remaining_defence
from leaktight.attacks.played_model import PlayedModel
from leaktight.attacks.running_statistics import RunningStatistics, tells_statistics
from leaktight.attacks.suite import fitting_attacks, prior_of, whole_suite
from leaktight.core.attack import Attack, Ensemble, Guess, LabelScores, Reconstruction
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import Refusal, unknown
from leaktight.core.random import Stream, stream
from leaktight.core.run import MessageKey
from leaktight.core.threat import Knows, View

STATISTICS = RunningStatistics()
"""What is read wherever batch norm sends its running statistics along; it costs nothing."""


class Strongest(Attack):
    """Try every attack that fits, and answer what is most likely under one common model. There is nothing to choose.

    Which attacks fit follows from the messages, the first layer, the defence's channel and what the threat model
    grants. From gradients and updates: `analytic`; `learned_inverter`, if public examples are granted; the searches
    `posterior` (also over several messages about the same examples), `free-loss` and `public-head` where the loss is
    private, and one by direction alone where a defence does not state its channel in full. Where batch norm sends its
    running statistics along, the searches match them too, and `running_statistics` reads the batch's own off them. In
    split learning: the attacks on labels.

    A known defence that states nothing of its channel is played on examples at random: what it adds to every message,
    or draws from few outcomes, is taken off the messages, and noise of a law of its own in each tensor is modelled
    (`played_channel`).

    Cheap attacks run on all messages. Expensive ones run on those that are not yet read: no attack has proven its
    answer, and no guess gives a message without randomness up to rounding. Where there is no defence every attack runs
    on every message, for its failure is evidence about a defence only if it works without one.

    The answer for each message is a proven guess if there is one, else the guess with the highest posterior under the
    known channel and the prior that public examples make, or without these a prior of pictures that needs no data.
    Where plays do not tell the channel in full, it is the guess that the played defence turns into what is next to the
    message. An attacker has nothing else to choose by. In split learning the first attack answers that models the
    defence: `label_posterior`, wherever it runs.

    Args:
        members: the attacks to try, by name, in order; empty for all that there are. A budget writes its list here.
        left_out: attacks that are not tried, by name, each with the reason. A budget writes what it cannot pay for
            here.

    Example:
        >>> Strongest().member("analytic").principle
        'algebra'

    References: Croce and Hein 2020, Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse
        Parameter-free Attacks, whose suite without settings this follows; Carlini et al. 2019, On Evaluating
        Adversarial Robustness.
    """

    kind: Literal["strongest"] = "strongest"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs", "labels", "scores", "statistics"})
    goals: ClassVar[tuple[str, ...]] = (
        "rebuild the examples",
        "read off the labels",
        "tell examples apart",
        "read off the statistics of batch normalisation",
    )
    members: dict[str, SerializeAsAny[Attack]] = {}
    left_out: dict[str, str] = {}

    def __hash__(self) -> int:
        """Hash its settings: those of members are in a dictionary, which has no hash of its own."""
        return hash(self.key)

    @property
    def wants(self) -> frozenset[Knows]:
        """Whatever a threat model may grant an attacker who only observes: the defence, and public examples."""
        return frozenset({Knows.DEFENCE, Knows.AUXILIARY, Knows.LOCAL_STEPS})

    def suite(self) -> Mapping[str, Attack]:
        """Return the attacks that are tried where they fit, in order."""
        return self.members or whole_suite()

    def member(self, name: str) -> Attack:
        """Return the attack of that name."""
        suite = {**self.suite(), STATISTICS.kind: STATISTICS}
        if name not in suite:
            raise unknown("member", name, suite)
        return suite[name]

    def models(self, defence: Defence) -> bool:
        """Whether some member does."""
        return any(attack.models(defence) for attack in self.suite().values())

    def run(self, view: View, rng: Stream) -> Ensemble:
        """Try the attacks one after the other, and choose."""
        chosen, untried = fitting_attacks(self.suite(), view)
        untried = {**untried, **self.left_out}
        if not view.exchanges():
            return self._scores(view, chosen, untried, rng)
        cascade = _Cascade(view, rng)
        for name, attack in chosen.items():
            keys = cascade.messages_for(attack)
            if not keys:
                untried[name] = "every message was read before"
                continue
            try:
                cascade.add(
                    name, attack, attack(cascade.view_of(attack).only(keys), stream(rng.initial_seed(), "member", name))
                )
            except Refusal as refusal:
                untried[name] = str(refusal)
        if not cascade.members:
            raise Refusal(f"No attack of the suite fits. {next(iter(untried.values()), '')}")
        answer = cascade.answer()
        members = dict(cascade.members)
        if tells_statistics(view):
            members[STATISTICS.kind] = STATISTICS(view, stream(rng.initial_seed(), "member", STATISTICS.kind))
        return Ensemble(answer.keys, answer, members, untried)

    def _scores(self, view: View, chosen: Mapping[str, Attack], untried: dict[str, str], rng: Stream) -> Ensemble:
        """Let every label attack score the rows of split learning; the first that models the defence answers."""
        guesses: dict[str, Guess] = {}
        for name, attack in chosen.items():
            try:
                guesses[name] = attack(view, stream(rng.initial_seed(), "member", name))
            except Refusal as refusal:
                untried[name] = str(refusal)
        scores = {name: guess for name, guess in guesses.items() if isinstance(guess, LabelScores)}
        if not scores:
            raise Refusal(f"No attack of the suite fits. {next(iter(untried.values()), '')}")
        defence = view.defence or Undefended()
        best = next((name for name in scores if chosen[name].adapts_to(defence)), next(iter(scores)))
        return Ensemble(scores[best].keys, scores[best], guesses, untried)


class _Cascade:
    """What is known of each message so far."""

    def __init__(self, view: View, rng: Stream) -> None:
        self.view, self.cleaned = view, view
        self.keys: tuple[MessageKey, ...] = tuple(exchange.sent.key for exchange in view.exchanges())
        self.model: CommonModel | PlayedModel | None = self._model(rng.initial_seed())
        self.members: dict[str, Guess] = {}
        self.read: set[MessageKey] = set()
        self.best: dict[MessageKey, tuple[tuple[bool, float], Tensor, Tensor | None, Tensor | None]] = {}
        self.labels: dict[MessageKey, Tensor] = {}

    def _model(self, seed: int) -> CommonModel | PlayedModel | None:
        """Return what guesses are ranked by: the stated channel, else what the defence does when it is played."""
        defence = self.view.defence
        if defence is not None and defence.is_public and defence.channel(self.view.task) == Channel(complete=False):
            try:
                changes = play(self.view, defence, stream(seed, "plays"))
                left = remaining_defence(changes)
                self.cleaned = clean(self.view, changes, left)
                if not left.whole:
                    return PlayedModel(self.view, defence, changes, stream(seed, "played model"))
            except Refusal:
                # What cannot be played is attacked as if it were off.
                self.cleaned = self.view
        return model_of(self.cleaned, prior_of(self.view), stream(seed, "common model"))

    def view_of(self, attack: Attack) -> View:
        """Return what an attack sees: cleaned messages, or the real ones if it plays the defence itself."""
        return self.view if attack.principle == "learned" else self.cleaned

    def messages_for(self, attack: Attack) -> list[MessageKey]:
        """Return the messages that an attack is to look at."""
        everything = attack.simple or self.view.defence is None or isinstance(self.view.defence, Undefended)
        return [key for key in self.keys if everything or key not in self.read]

    def add(self, name: str, attack: Attack, guess: Guess) -> None:
        """Take down what an attack guessed.

        A proof is one of the example that was trained on. Where a defence changes examples first, only who models it
        speaks of the original.
        """
        self.members[name] = guess
        if not isinstance(guess, Reconstruction):
            return
        place = {key: number for number, key in enumerate(guess.keys)}
        rows = [place.get(key) for key in self.keys]
        inputs = [None if row is None else guess.inputs[row] for row in rows]
        labels = [None if row is None or guess.labels is None else guess.labels[row] for row in rows]
        proofs = [None if row is None or guess.certified is None else guess.certified[row] for row in rows]
        costs, explained = self._judge(inputs, labels)
        defence = self.view.defence
        original = defence is None or "on_batch" not in defence.hooks() or attack.adapts_to(defence)
        for number, key in enumerate(self.keys):
            guessed, proof = inputs[number], proofs[number]
            if guessed is None:
                continue
            proven = original and proof is not None and bool(proof.all())
            rank = not proven, float(costs[number])
            if key not in self.best or rank < self.best[key][0]:
                self.best[key] = rank, guessed, labels[number], proof
            if (label := labels[number]) is not None:
                self.labels.setdefault(key, label)
            if proven or explained[number]:
                self.read.add(key)

    def _judge(self, inputs: list[Tensor | None], labels: list[Tensor | None]) -> tuple[Tensor, list[bool]]:
        if self.model is None:
            # Nothing ranks the guesses: a later attack is the stronger one.
            return torch.full((len(inputs),), -float(len(self.members))), [False] * len(inputs)
        return self.model.score(inputs, labels), self.model.explains(inputs, labels)

    def answer(self) -> Reconstruction:
        """Return the best guess for each message."""
        keys = tuple(key for key in self.keys if key in self.best)
        answers = [self.best[key] for key in keys]
        # An answer without labels of its own comes with those that another attack read.
        labels = [
            self.labels.get(key) if answer[2] is None else answer[2] for key, answer in zip(keys, answers, strict=True)
        ]
        judge = None
        if self.model is not None and keys == self.keys:
            judge = self.model.at_truth
        return Reconstruction(
            keys=keys,
            inputs=tuple(answer[1] for answer in answers),
            labels=tuple(label for label in labels if label is not None)
            if all(label is not None for label in labels)
            else None,
            objective=torch.tensor([answer[0][1] for answer in answers]) if self.model is not None else None,
            judge=judge,
            certified=tuple(
                torch.zeros(len(answer[1]), dtype=torch.bool) if answer[3] is None else answer[3].bool()
                for answer in answers
            ),
        )
