"""The project that Flower builds and runs: a folder with settings alone, because the app itself is installed with Leaktight."""

from __future__ import annotations

import json
from pathlib import Path

from leaktight.core.private import write_private
from leaktight.learning.joint import JointTraining

PROFILE = "leaktight"
_PROJECT = """[project]
name = "leaktight-training"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "leaktight"

[tool.flwr.app.components]
serverapp = "leaktight.flower.app:server_app"
clientapp = "leaktight.flower.app:client_app"

[tool.flwr.app.config]
"""


def write_project(folder: Path, training: JointTraining, out: Path, patience: float) -> Path:
    """Write a project for one training and return its folder.

    Args:
        folder: where to.
        training: what all parties agree on; it goes to every node.
        out: where the server writes the model.
        patience: after how many seconds without an answer a message is sent again.
    """
    settings = {"training": json.dumps(training.to_dict()), "out": str(out.absolute()), "patience": float(patience)}
    # A text or a number of JSON is one of TOML, too.
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
    write_private(folder / "pyproject.toml", (_PROJECT + "".join(lines)).encode())
    return folder


def write_profile(home: Path, address: str, authority: Path | None, federation: str = "") -> None:
    """Write where Flower's command finds the SuperLink.

    Args:
        home: Flower's own folder.
        address: host and port.
        authority: the certificate that the SuperLink's is signed by; None for a connection without TLS, on loopback alone.
        federation: settings of a simulation, in TOML.
    """
    way = "insecure = true" if authority is None else f"root-certificates = {json.dumps(str(authority.absolute()))}"
    text = f"[superlink]\ndefault = {json.dumps(PROFILE)}\n\n[superlink.{PROFILE}]\naddress = {json.dumps(address)}\n{way}\n{federation}"
    write_private(home / "config.toml", text.encode())
