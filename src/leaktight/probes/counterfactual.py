"""Counterfactual: what a probe would find if the senders of an undefended run had used a defence for these messages alone."""

from __future__ import annotations

import dataclasses
from typing import Literal

from pydantic import SerializeAsAny

from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.learning.client import Client


class Counterfactual(Probe):
    """Let every sender answer once more, with a defence, and show the result to another probe: many defences share one training run.

    The model, the examples and the attacker stay what they were; only what was sent differs. So it says what a defence does to the
    message, and nothing about what a training under it would have come to.

    Args:
        defence: what the senders would have used. It must leave the agreed task as it is, and starts without memory for each message.
        probe: who looks at what they would have sent.

    Example:
        >>> from leaktight.attacks import Analytic
        >>> from leaktight.core.probe import Attempt
        >>> from leaktight.core.random import stream
        >>> from leaktight.defences import GaussianNoise
        >>> from leaktight.metrics import MSE
        >>> from leaktight.testing import toy_run
        >>> attempt = Attempt(attack=Analytic(), metrics=(MSE(),))
        >>> run = toy_run(batch_size=1)
        >>> noisy = Counterfactual(defence=GaussianNoise(std=1.0), probe=attempt)
        >>> plain, noised = (one.read(run, stream(0, "probe")).readings[0].value for one in (attempt, noisy))
        >>> plain < 1e-6 < noised
        True

    Differs from the paper: Gao et al. say that they apply each of 100 policies to the training set, and not whether a model was trained for
    each; here none is.

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, section 4.2, Fig. 2.
    """

    kind: Literal["counterfactual"] = "counterfactual"
    defence: SerializeAsAny[Defence]
    probe: SerializeAsAny[Probe]

    def read(self, run: Run, rng: Stream) -> Finding:
        """Show the run as it would have been."""
        return self.probe.read(counterfactual(run, self.defence), rng)


def counterfactual(run: Run, defence: Defence) -> Run:
    """Return an undefended run of gradients as it would have been under a defence.

    Raises:
        Refusal: the run has a defence already, shares something else than gradients, or the defence changes the agreed task.
    """
    if not isinstance(run.defence, Undefended):
        raise Refusal(f"A counterfactual needs a run without a defence. This one has {run.defence}.")
    if defence.on_agree(run.public) is not run.public:
        raise Refusal(
            f"A counterfactual needs a defence that leaves the agreed task as it is. {defence.kind} changes it, so train with it instead."
        )
    asked: dict[str, Message] = {}
    inside: dict[MessageKey, GroundTruth] = {}
    transcript = []
    for message in run.transcript:
        if message.kind is Kind.PARAMETERS:
            asked[message.receiver] = message
        elif message.kind is not Kind.GRADIENT:
            raise Refusal(f"A counterfactual needs a run of gradients. This one has a message of kind {message.kind}.")
        elif message.key in run.inside:
            inside[message.key] = _answered(run, defence, asked[message.sender], message)
            message = inside[message.key].sent
        transcript.append(message)
    return dataclasses.replace(run, transcript=tuple(transcript), defence=defence, inside=inside)


def _answered(run: Run, defence: Defence, ask: Message, former: Message) -> GroundTruth:
    """Return both sides of what a sender would have answered; who attacks knows the same facts of it."""
    before = run.inside[former.key]
    own = run.locals.get(former.sender)
    client = Client(
        name=former.sender,
        public=run.public,
        data=before.raw,
        defence=defence,
        local=Local(former.sender, own.seed if own else 0),
        batch_size=len(before.raw),
    )
    found = client.answer(ask)
    return dataclasses.replace(
        found, sent=dataclasses.replace(found.sent, facts=former.facts), plain=before.clean, owned=before.owned
    )
