"""Party files: one party's configuration in TOML, or one error that shows every fault with its place."""

from __future__ import annotations

import dataclasses
import ipaddress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, model_validator

from leaktight.core.defence import Defence, Undefended
from leaktight.core.device import DeviceName
from leaktight.core.document import parse_toml
from leaktight.core.errors import SHOWN, InvalidValue, did_you_mean, excerpt
from leaktight.core.input_file import LARGEST_SETTINGS, MEBIBYTE, read_input
from leaktight.core.private import reason
from leaktight.core.value import Value
from leaktight.data.source import Source
from leaktight.learning.boundary import FEATURE_PARTY, LABEL_PARTY
from leaktight.learning.optimiser import Adam, Optimiser
from leaktight.learning.split import Split
from leaktight.models.network import Network
from leaktight.plans.build import Faults, Table, build_value
from leaktight.wire.compression import Compression
from leaktight.wire.party_data import PartyData, PartyTable

SECTIONS = ("title", "scenario", "defence", "wire")
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Agreement(Value):
    """What both parties must agree on, beside `every` and `compression`; settings are those of the scenario `split`.

    Args:
        model: the network that is cut in two.
        cut: the last layer of the feature party; empty cuts before the head.
        optimiser: how each party's parameters follow gradients.
        rounds: how many steps the training run takes, at least 1.
        batch_size: examples per step, at least 2.
        seed: public: what the order of examples follows from.
        label_party: columns of the label party, where the data is a whole data set.
        feature_party: columns of the feature party, likewise.
        normalise: whether this party standardises its numbers by its test rows.
        device: where this party's tensors live.
    """

    kind: Literal["split"] = "split"
    model: SerializeAsAny[Network]
    cut: str = ""
    optimiser: SerializeAsAny[Optimiser] = Adam()
    rounds: int = Field(200, ge=1, lt=2**31)
    batch_size: int = Field(256, ge=2)
    seed: int = Field(0, ge=0)
    label_party: tuple[str, ...] = ()
    feature_party: tuple[str, ...] = ()
    normalise: bool = True
    device: DeviceName = "cpu"

    def shared_settings(self) -> dict[str, Any]:
        """Return the settings that are compared; the rest is each party's own affair."""
        settings = self.to_dict()
        return {name: settings[name] for name in ("model", "cut", "optimiser", "rounds", "batch_size", "seed")}


class Wire(Value):
    """How a party reaches the other one, and what it keeps for itself.

    Args:
        listen: `host:port` where it waits for the other one; one of the two parties listens, whichever can be reached.
        connect: `host:port` where the other one waits.
        certificates: the folder with `authority.pem`, `certificate.pem` and `key.pem`, as `leaktight certificates`
            makes it.
        peer: the name that the other one's certificate must carry; empty means its role.
        insecure: no TLS; on a loopback address only.
        checkpoint: the file that the party's own state is kept in, for its owner alone.
        every: steps between two checkpoints, at least 1; the same on both sides. With 1 no step is ever replayed.
        compression: of activations: `none`, `float16` or `int8`; the same on both sides.
        largest: MiB that one message may have at most, above 0.
        most_ids: how many ids the feature party's columns may have in all, or numbers an image; it bounds the model's
            size.
        most_parameters: how many parameters the network may have in all, at least 1: its size follows from what the
            other party says.
        heartbeat: seconds of silence after which gRPC asks the other party for a sign of life.
        timeout: seconds of silence after which the other party counts as lost; longer than `heartbeat`.
        patience: seconds that a party waits for the other one to come, to come back, or to send its next message.
    """

    listen: str = ""
    connect: str = ""
    certificates: str = ""
    peer: str = ""
    insecure: bool = False
    checkpoint: Annotated[str, Field(min_length=1)]
    every: int = Field(50, ge=1)
    compression: Compression = "none"
    largest: float = Field(64.0, gt=0, le=2000)
    most_ids: int = Field(10_000_000, ge=0)
    most_parameters: int = Field(150_000_000, ge=1)
    heartbeat: Seconds = 5.0
    timeout: Seconds = 30.0
    patience: Seconds = 600.0

    @model_validator(mode="after")
    def _reachable(self) -> Wire:
        if bool(self.listen) == bool(self.connect):
            raise InvalidValue("Wire must have one of `listen` and `connect`, each a `host:port`. Got both or neither.")
        host, _ = split_address(self.address)
        if self.insecure and not is_loopback(host):
            raise InvalidValue(
                f"Wire may be `insecure` on a loopback address only. Got {host!r} instead; make certificates."
            )
        if self.insecure == bool(self.certificates):
            raise InvalidValue(
                "Wire must have `certificates`, the folder that `leaktight certificates` makes, or be `insecure`. "
                "Got both or neither."
            )
        if self.timeout <= self.heartbeat:
            raise InvalidValue(
                f"The `timeout` of Wire must be above its `heartbeat`, {self.heartbeat:g}. Got {self.timeout:g} "
                "instead."
            )
        return self

    @property
    def address(self) -> str:
        """Where to listen or to connect."""
        return self.listen or self.connect

    @property
    def limit(self) -> int:
        """How many bytes one message may have."""
        return int(self.largest * MEBIBYTE)


@dataclasses.dataclass(frozen=True)
class PartyFile:
    """What one party needs.

    Args:
        agreement: what both share.
        data: a `party_table`, or a whole data set of which the party takes its part.
        defence: what this party does to its messages.
        wire: how it reaches the other one.
    """

    agreement: Agreement
    data: PartyTable | Source
    defence: Defence
    wire: Wire

    def load_data(self, role: str) -> PartyData:
        """Read what this party holds."""
        labelled = role == LABEL_PARTY
        if isinstance(self.data, PartyTable):
            return self.data.load(labelled)
        common = self.agreement
        columns = {"label_party": common.label_party, "feature_party": common.feature_party}
        return PartyData.of_split(Split(data=self.data, model=common.model, cut=common.cut, **columns), labelled)

    def shared_settings(self) -> dict[str, Any]:
        """Return every setting that both parties must have alike."""
        return {**self.agreement.shared_settings(), "every": self.wire.every, "compression": self.wire.compression}

    def peer(self, role: str) -> str:
        """Return the name that the other party's certificate must carry."""
        return self.wire.peer or other_role(role)


def read_party_file(path: Path) -> PartyFile:
    """Return what a party's TOML file describes.

    Raises:
        InvalidValue: the file is missing, is not TOML, or has faults; all of them are shown, each with its place.
    """
    try:
        document = parse_toml(read_input(path, LARGEST_SETTINGS).decode())
    except FileNotFoundError:
        raise InvalidValue(
            f"There is no file `{path}`. Write one with `leaktight init --scenario label-party {path}`."
        ) from None
    except UnicodeDecodeError:
        raise InvalidValue(f"The file `{path}` is not text in UTF-8. A party's file is TOML.") from None
    except OSError as error:
        raise InvalidValue(f"The file `{path}` cannot be read: {reason(error)}.") from None
    except ValueError as error:
        raise InvalidValue(f"The file `{path}` is not valid TOML: {error}.") from None
    return parse_party_file(document, f"The file `{path}`")


def parse_party_file(document: Table, source: str = "The party's file") -> PartyFile:
    """Return what a document describes, in the form of a party's file.

    Example:
        >>> file = parse_party_file({
        ...     "scenario": {"data": "rare_digit", "model": "mlp", "rounds": 10},
        ...     "wire": {"listen": "127.0.0.1:7443", "insecure": True, "checkpoint": "label.safetensors"},
        ... })
        >>> file.agreement.rounds, str(file.defence)
        (10, 'none')
    """
    faults = Faults()
    for name in document:
        if name not in SECTIONS:
            faults.add("", f"There is no section `{name[:SHOWN]}`. {did_you_mean(name, SECTIONS)}")
    scenario = document.get("scenario", {})
    if not isinstance(scenario, dict):
        faults.add("scenario", f"It must be a table of settings. Got {excerpt(scenario)} instead.")
        scenario = {}
    # Settings that only an audit needs are left out, so that a plan's scenario can be used as it is.
    own = {name: value for name, value in scenario.items() if name not in ("data", "moments", "name")}
    agreement = build_value(Agreement, own, "scenario", faults)
    data = _data(scenario, faults)
    defence = build_value(Defence, document["defence"], "defence", faults) if "defence" in document else Undefended()
    wire = build_value(Wire, document.get("wire", {}), "wire", faults)
    faults.check(source)
    return PartyFile(agreement, data, defence, wire)


def other_role(role: str) -> str:
    """Return the other party's role."""
    return FEATURE_PARTY if role == LABEL_PARTY else LABEL_PARTY


def split_address(address: str) -> tuple[str, int]:
    """Return host and port.

    Example:
        >>> split_address("[::1]:7443")
        ('::1', 7443)
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise InvalidValue(f"An address must be `host:port`, such as `127.0.0.1:7443`. Got {address!r} instead.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and no other.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
        (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _data(scenario: Table, faults: Faults) -> Any:
    if "data" not in scenario:
        faults.add("scenario", 'The `data` is missing. Add `[scenario.data]` with a `kind`, such as "party_table".')
        return None
    data = scenario["data"]
    root = PartyTable if isinstance(data, dict) and data.get("kind") == "party_table" else Source
    return build_value(root, data, "scenario.data", faults)
