"""A deployment of Flower on this machine, with TLS and authentication.

It has a SuperLink and one SuperNode per participant.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from leaktight.core.certificates import Certificate, make_certificates, make_node_key
from leaktight.core.errors import LeaktightError
from leaktight.flower.launcher import PROFILE, SUPERLINK, OnRound, open_programs, run_training, start_superlink
from leaktight.flower.node_state import STATE_FOLDER
from leaktight.flower.patches import app_end, forget_app_end
from leaktight.flower.processes import Programs, free_port
from leaktight.flower.remote import PATIENCE
from leaktight.learning.joint import JointTraining

NODES = "nodes"
STARTS, PAUSE = 20, 3.0
"""How often a node is started at most, and how many seconds after it ended."""


@dataclasses.dataclass(frozen=True)
class Keys:
    """What the machines of a deployment know each other by.

    Args:
        superlink: the SuperLink's certificate; nodes know it by the authority's.
        nodes: for each node its private and its public key, by name.
    """

    superlink: Certificate
    nodes: Mapping[str, tuple[Path, Path]]


def load_keys(folder: Path, nodes: int) -> Keys:
    """Return the certificates and keys in a folder; those that are missing are made.

    Args:
        folder: `superlink/` with a certificate, `nodes/` with a key `client-0` and so on for each node.
        nodes: how many nodes there are.
    """
    place = folder / SUPERLINK
    superlink = Certificate(SUPERLINK, place / "authority.pem", place / "certificate.pem", place / "key.pem")
    if not place.exists():
        superlink = make_certificates(folder, [SUPERLINK])[SUPERLINK]
    pairs = {}
    for number in range(nodes):
        name = f"client-{number}"
        private = folder / NODES / name
        pairs[name] = (
            (private, private.with_name(f"{name}.pub")) if private.exists() else make_node_key(folder / NODES, name)
        )
    return Keys(superlink, pairs)


class Deployment:
    """A SuperLink and nodes on loopback; a node proves by its key who it is, and is refused if it is not registered.

    Args:
        programs: where everything is started.
        keys: certificates and keys.
    """

    def __init__(self, programs: Programs, keys: Keys) -> None:
        self._programs, self._keys = programs, keys
        own = keys.superlink
        self.address = start_superlink(
            programs,
            "--enable-supernode-auth",
            *(
                "--ssl-ca-certfile",
                str(own.authority),
                "--ssl-certfile",
                str(own.certificate),
                "--ssl-keyfile",
                str(own.key),
            ),
            authority=own.authority,
        )
        for _, public in keys.nodes.values():
            programs.run("flwr", "supernode", "register", str(public), PROFILE)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._due: dict[int, float] = {}
        self._starts: Counter[int] = Counter()

    def start_node(self, number: int, key: Path | None = None) -> subprocess.Popen[bytes]:
        """Start the node of a participant; what it remembers is kept in a folder of its own, also for its successor.

        Args:
            number: which participant.
            key: the private key that it proves itself by, if not its own.
        """
        name = f"client-{number}"
        settings = {
            "partition-id": number,
            "num-partitions": len(self._keys.nodes),
            STATE_FOLDER: str(self._programs.folder / name),
        }
        self._starts[number] += 1
        forget_app_end(self._programs.folder, name)
        self._running[number] = self._programs.start(
            name,
            "flower-supernode",
            *("--superlink", self.address, "--port", str(free_port())),
            *("--root-certificates", str(self._keys.superlink.authority)),
            *("--auth-supernode-private-key", str(key or self._keys.nodes[name][0])),
            *("--node-config", " ".join(f"{name}={json.dumps(value)}" for name, value in settings.items())),
        )
        return self._running[number]

    def tend(self) -> None:
        """Start nodes anew that ended, or whose app was killed.

        For a while the SuperLink believes that a killed node is still there, and refuses its successor.

        Raises:
            LeaktightError: one ended too often; what its log says.
        """
        for number, running in list(self._running.items()):
            name = f"client-{number}"
            if running.poll() is None and app_end(self._programs.folder, name):
                self._programs.end(name)
            if running.poll() is None:
                continue
            if self._starts[number] >= STARTS:
                message, log = self._programs.last_message(name), self._programs.log(name)
                raise LeaktightError(f"The node of {name} ended {STARTS} times: {message}. Its log is `{log}`.")
            if time.monotonic() >= self._due.setdefault(number, time.monotonic() + PAUSE):
                del self._due[number]
                self.start_node(number)


def deploy(
    training: JointTraining,
    out: Path,
    keys: Path,
    on_round: OnRound | None = None,
    patience: float = PATIENCE,
    trust: bool = False,
) -> None:
    """Train in a deployment on this machine and write the model to a folder; everything that is started is stopped.

    Args:
        training: what is trained.
        out: where the model and its curve go.
        keys: the folder with certificates and keys; what is missing there is made.
        on_round: called after each round.
        patience: after how many seconds without an answer a message is sent again.
        trust: whether other users of this machine may reach the SuperLink and the nodes.
    """
    count = training.scenario.participants
    with open_programs(out, trust) as programs:
        deployment = Deployment(programs, load_keys(keys, count))
        for number in range(count):
            deployment.start_node(number)
        run_training(programs, training, out, on_round, patience=patience, tend=deployment.tend)
