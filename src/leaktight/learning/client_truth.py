"""The ground truth behind participants' messages, for metrics and for nobody else.

It is written down while they are observed.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence

from leaktight.core.defence import Undefended
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.party import Party, Seat
from leaktight.core.run import GroundTruth, MessageKey, mean_statistics
from leaktight.core.scenario import Enter
from leaktight.core.task import Batch
from leaktight.learning.aggregate import secure_sum
from leaktight.learning.client import Client


@dataclasses.dataclass(frozen=True)
class _Watched:
    """An honest participant whose ground truth is written down.

    Neither it nor whoever may take its seat can reach what is written.
    """

    client: Client
    truths: dict[MessageKey, GroundTruth]

    @property
    def name(self) -> str:
        return self.client.name

    def respond(self, message: Message) -> Message:
        twin = None if isinstance(self.client.defence, Undefended) else _twin(self.client)
        truth = self.client.answer(message)
        plain = truth.clean if twin is None else twin.respond(message)
        self.truths[truth.sent.key] = dataclasses.replace(
            truth, plain=plain, owned=self.client.data, revealed=self.client.reveals()
        )
        return truth.sent

    def close(self) -> Message | None:
        return self.client.close()


def _twin(client: Client) -> Client:
    """Return who would answer in a participant's place without a defence.

    It has the same examples, the agreed task and no secrets.

    Of what the participant remembers it has only the parameters that it did not take from the server.
    """
    kept = {name: copy.deepcopy(value) for name, value in client.local.memory.items() if name == "download"}
    return dataclasses.replace(
        client, defence=Undefended(), local=Local(client.local.party, client.local.seed, memory=kept)
    )


def watch(seat: Seat, enter: Enter | None, truths: dict[MessageKey, GroundTruth]) -> Party:
    """Return who sits in a seat; the ground truth of an honest participant's messages is written down."""
    party = enter(seat) if enter else seat.honest
    return _Watched(party, truths) if isinstance(party, Client) and party is seat.honest else party


def take_truth(parties: Sequence[Party], number: int, truths: dict[MessageKey, GroundTruth]) -> list[GroundTruth]:
    """Take out the ground truth of a round's messages, of all who were honest."""
    return [truths.pop((party.name, number)) for party in parties if (party.name, number) in truths]


def join_owned(parts: list[GroundTruth]) -> Batch | None:
    """Return all that the senders of some messages own; None if that is not known of each."""
    owned = [part.owned for part in parts if part.owned is not None]
    return Batch.join(owned) if len(owned) == len(parts) else None


def join_truth(parts: list[GroundTruth], sent: Message, owned: Batch | None) -> GroundTruth:
    """Return a secure sum's ground truth: everybody's examples, and what the sum would have been without defence."""
    plain = [part.plain for part in parts if part.plain is not None]
    return dataclasses.replace(
        parts[0],
        raw=Batch.join([part.raw for part in parts]),
        used=Batch.join([part.used for part in parts]),
        clean=secure_sum([part.clean for part in parts]),
        sent=sent,
        plain=secure_sum(plain) if len(plain) == len(parts) else None,
        owned=owned,
        masks={},
        statistics=mean_statistics(parts),
        revealed={f"{part.sent.sender}/{name}": key for part in parts for name, key in part.revealed.items()},
    )
