"""DP-SGD: clip each example's gradient, add noise, and count what it costs."""

from __future__ import annotations

from typing import ClassVar, Literal

from leaktight.channels.clip import Clip
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Channel
from leaktight.core.defence import Gradient
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import SPENT, Local
from leaktight.core.message import Message, Tensors
from leaktight.core.sampling import Poisson
from leaktight.core.task import Task
from leaktight.defences.clipping import clip_each, example_norms, round_to
from leaktight.defences.dp_account import budget_notes, count_step
from leaktight.defences.finite import finite, finite_tensors
from leaktight.defences.gaussian_mechanism import GaussianMechanism


class DPSGD(GaussianMechanism):
    r"""Bound what any one example can change, and drown it in noise: differential privacy with a number to it.

    Without it the mean gradient of a batch goes out, or local steps follow it. With it each local step uses

    .. math:: \tilde g = \frac{1}{B} \Bigl( \sum_{i \in S} g_i \min\bigl(1, \tfrac{C}{\lVert g_i \rVert}\bigr)
        + \sigma C z \Bigr), \qquad z \sim N(0, I),

    where \(g_i\) is the gradient of example \(i\) over all parameters together, and \(S\) is the batch. In training
    each of the party's \(n\) examples is in \(S\) with probability \(q = B / n\), independently of the others (Poisson
    sampling), by a draw that the party keeps secret. \(B\) is the expected size: a batch may be larger, or empty, and
    then pure noise goes out.

    The party notes `dp_sgd.epsilon`, cumulative over all its steps and rounds, `dp_sgd.delta`, and what the account
    rests on:

    - `dp_sgd.sample_rate`: the \(q\) of steps by Poisson sampling.
    - `dp_sgd.participations`: without sampling, the number of steps counted for the example that took part in most. An
      example that is m times in a batch counts as m^2 steps (`dp_sgd.repeats` is the largest m). Where nobody says how
      batches were chosen, every example counts in every step.
    - `dp_sgd.attacked`: the same for messages that only an audit asks for. Their batches are fixed by the audit, so no
      amplification is claimed for them, and \(B\) is their real size.

    Epsilon is an upper bound if batches were drawn as noted. `dp_sgd.clipped`, the share of gradients that were
    clipped, is for the party itself; no epsilon covers it.

    Half precision is clipped and summed, and the noise is added, in single precision.

    Args:
        clip: \(C\), the norm that no example's gradient exceeds, in (0, inf); less is stronger on the message, epsilon
            stays.
        multiplier: \(\sigma\), noise over clip, in [0, 10000]; more is stronger. At 0 the gradients are still clipped,
            and epsilon is infinite: there is no value that means off.
        delta: the probability with which the guarantee may fail, in (0, 1); keep it well below one over the party's
            examples.

    Example:
        >>> import torch
        >>> from leaktight.core.budget import budgets_of
        >>> from leaktight.core.message import Kind
        >>> local = Local("client-0", seed=0)
        >>> local.now.examples, local.now.sampling = 100, Poisson(rate=0.1, expected=10)
        >>> defence = DPSGD(clip=1.0, multiplier=1.0)
        >>> each = Gradient({"weight": torch.ones(12, 4)}, per_example=True)
        >>> sent = defence.on_gradient(each, local)
        >>> sent.per_example, sent.tensors["weight"].shape
        (False, torch.Size([4]))
        >>> message = defence.on_message(Message(Kind.GRADIENT, "client-0", "server", 0, sent.tensors), local)
        >>> print(*budgets_of(local.notes))
        epsilon at most 2.13 at delta 1e-05 (upper bound; Poisson sampling at rate 0.1)

    Differs from the paper: epsilon comes from Opacus' Rényi accountant, not from the moments accountant. Where nothing
    is sampled, epsilon comes from the exact law of the Gaussian mechanism. Two data sets are neighbours if one has an
    example more. Where batches are not sampled, that example is replaced by one without a gradient, so that the batches
    of the others stay as they are. How many examples a party owns is not protected; the real size of a sampled batch
    is, so messages tell the expected size. Noise is drawn in floating point. The guarantee supposes that the noise and
    the choice of examples stay secret.

    References:
        Abadi et al., "Deep Learning with Differential Privacy", 2016, algorithm 1; Mironov, Talwar and Zhang, "Rényi
        Differential Privacy of the Sampled Gaussian Mechanism", 2019, section 3.3; Balle et al., "Hypothesis Testing
        Interpretations and Rényi Differential Privacy", 2020, theorem 21.
    """

    kind: Literal["dp_sgd"] = "dp_sgd"
    title: ClassVar[str] = "DP-SGD"

    @property
    def per_example(self) -> bool:
        """Clipping needs each example's own gradient."""
        return True

    @property
    def covers_buffers(self) -> bool:
        """No noise is on running statistics, and no account speaks of them."""
        return False

    @property
    def wants_poisson(self) -> bool:
        """Poisson sampling is what keeps epsilon small."""
        return True

    def channel(self, task: Task) -> Channel:
        """State that each example is clipped by itself, and that their sum gets noise in every step.

        Of batches by Poisson sampling this takes the expected number of examples for the real one.
        """
        noise = (AddNoise(std=self.clip * self.multiplier, per_example=True),) if self.multiplier else ()
        return Channel(example=(Clip(self.clip),), step=noise)

    def on_gradient(self, gradient: Gradient, local: Local) -> Gradient:
        """Clip, sum, add noise, divide by the expected size of the batch; remember the cost."""
        if not gradient.per_example:
            raise Refusal(
                f"{self.kind} must clip each example's own gradient. Got an average instead; put it before any "
                "defence that averages."
            )
        finite_tensors(gradient.tensors, f"The gradient of {local.party} in round {local.round} under {self.kind}")
        size = len(next(iter(gradient.tensors.values())))
        self._count(gradient.tensors, size, local)
        expected = local.sampling.expected if isinstance(local.sampling, Poisson) else size
        noise = self.clip * self.multiplier
        sums = {name: tensor.sum(0) for name, tensor in clip_each(gradient.tensors, self.clip).items()}
        noisy = {
            name: (total + noise * local.draws.private_normal_like(total)) / expected for name, total in sums.items()
        }
        # Half precision comes back only after the noise: what rounding does then, it does to what is private already.
        mean = {name: round_to(tensor, gradient.tensors[name].dtype) for name, tensor in noisy.items()}
        return Gradient(mean, per_example=False)

    def on_message(self, message: Message, local: Local) -> Message:
        """Let a message out if every step behind it was made private, and note what has been spent."""
        self.require_gradients(message)
        memory = local.memory
        private, taken = memory.get("unsent", 0), int(message.facts.get("local_steps", 1))
        if private < taken:
            raise InvalidValue(
                f"The {message.kind} of {message.sender} in round {message.round} must come from steps that went "
                f"through {self.kind}. Got {private} such steps of {taken} instead; call `on_gradient` in every local "
                "step."
            )
        memory["unsent"] = 0
        local.notes.update(budget_notes(memory.get(SPENT, {}), self.kind, self.multiplier, self.delta))
        local.notes["dp_sgd.clipped"] = memory["clipped"] / max(1, memory["seen"])
        return finite(message, self.kind)

    def _count(self, tensors: Tensors, size: int, local: Local) -> None:
        """Add one step to what the party has spent."""
        if not (isinstance(local.sampling, Poisson) or size > 0) or size > local.examples > 0:
            raise InvalidValue(
                f"The batch of {local.party} must be part of the examples that it owns, for {self.kind} to count what "
                f"each takes part in. Got {size} of {local.examples} instead."
            )
        memory = local.memory
        count_step(memory.setdefault(SPENT, {}), local.sampling, self.multiplier, local.examples)
        memory["seen"] = memory.get("seen", 0) + size
        memory["clipped"] = memory.get("clipped", 0) + int((example_norms(tensors) > self.clip).sum())
        memory["unsent"] = memory.get("unsent", 0) + 1
