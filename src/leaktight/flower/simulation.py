"""Flower's simulation: every participant a virtual node, on Ray workers of this machine."""

from __future__ import annotations

from pathlib import Path

from leaktight.core.threads import cores
from leaktight.flower.launcher import OnRound, open_programs, run_training, start_superlink
from leaktight.flower.processes import Programs
from leaktight.learning.joint import JointTraining


def simulate(
    training: JointTraining, out: Path, on_round: OnRound | None = None, workers: int | None = None, trust: bool = False
) -> None:
    """Train in Flower's simulation and write the model to a folder; everything that is started is stopped.

    Args:
        training: what is trained.
        out: where the model and its curve go.
        on_round: called after each round.
        workers: how many participants work at the same time, at least 1; None is one for each core.
        trust: whether other users of this machine may reach the SuperLink.
    """
    with open_programs(out, trust) as programs:
        start_simulation(programs)
        run_training(programs, training, out, on_round, "--federation-config", federation(training, workers))


def start_simulation(programs: Programs) -> None:
    """Start a SuperLink whose nodes are simulated, and so draw from the agreed seed."""
    programs.simulation = True
    start_superlink(programs, "--insecure", "--simulation")


def federation(training: JointTraining, workers: int | None = None) -> str:
    """Return the settings of a simulation, as `flwr run` takes them.

    Args:
        training: what is trained.
        workers: how many participants work at the same time; None is one for each core.
    """
    count = min(workers or cores(), training.scenario.participants)
    settings = {
        "num-supernodes": training.scenario.participants,
        "client-resources-num-cpus": 1,
        "init-args-num-cpus": count,
        "init-args-logging-level": '"error"',
        "init-args-log-to-driver": "false",
    }
    return " ".join(f"{name}={value}" for name, value in settings.items())
