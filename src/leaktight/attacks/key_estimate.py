"""Key estimates: other participants move embeddings towards their keys, and whoever holds the model before and after can tell where to."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.task import Task

KEPT = 0.98
"""How much of an estimate is left after each turn: keys stay, but what early turns tell of them is coarse."""


def key_estimate(task: Task, before: Tensors, after: Tensors, inputs: Tensor, earlier: Tensor | None) -> Tensor:
    r"""Return an estimate of the keys that others train for, not normalised, from what their updates do to the embeddings of some images.

    With \(\theta_t\) what an attacker left on its last turn, \(\theta_t'\) what it is handed now, and its own fakes x,

    .. math:: e_t = 0.98 \, e_{t-1} + \frac{m_t}{\lVert m_t \rVert}, \qquad m_t = \sum_x \phi_{\theta_t'}(x) - \phi_{\theta_t}(x) .

    A victim's step on an example of class c moves the embedding of every image towards \(\psi_c\), and those most that its model takes for
    similar. So fakes that begin to look like a class are moved towards its key, and a generator that follows the estimate is drawn there.

    Args:
        task: the agreed one, whose outputs are embeddings.
        before: the parameters that the attacker left behind, by the model's own names.
        after: those that it is handed on its next turn.
        inputs: the images.
        earlier: the estimate of its last turn; None on the first.

    Differs from the paper: It tries random keys only.
    """
    with torch.no_grad():
        found = [task.forward(parameters, inputs).sum(0) for parameters in (before, after)]
    moved = F.normalize(found[1] - found[0], dim=0)
    return moved if earlier is None else KEPT * earlier + moved


def left_behind(asked: Message, sent: Message) -> dict[str, Tensor]:
    """Return the parameters that a server would have if nobody but one participant had answered it: what others do comes on top.

    Where all are asked at once, a share of each answer counts. What a gradient comes to depends on the server, so that nothing is added.

    Example:
        >>> asked = Message(Kind.PARAMETERS, "server", "client-1", 0, {"weight": torch.ones(1)}, {"participants": 2.0})
        >>> left_behind(asked, Message(Kind.UPDATE, "client-1", "server", 0, {"weight": torch.ones(1)}))
        {'weight': tensor([1.5000])}
    """
    share = 1 / asked.facts.get("participants", 1.0) if sent.kind is Kind.UPDATE else 0.0
    own = sent.tensors if share else {}
    return {name: tensor + share * own[name] if name in own else tensor.clone() for name, tensor in asked.tensors.items()}
