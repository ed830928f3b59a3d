"""`leaktight train`: train a plan's model, in this process or on Flower."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leaktight.cli.interruption import stop_with
from leaktight.cli.table_options import NONE_GIVEN, TableOptions, takes_table_options

if TYPE_CHECKING:
    from leaktight.flower.launcher import OnRound
    from leaktight.learning.joint import JointTraining

EXAMPLES = """
\b
Examples:
  leaktight train audit.toml --defence top_k                here, one participant after the other
  leaktight train audit.toml --backend flower               in Flower's simulation
  leaktight train audit.toml --backend flower --deploy keys a SuperLink and SuperNodes here, with TLS and authentication
"""


@takes_table_options
def train(
    file: Annotated[Path, typer.Argument(help="A plan in TOML, as for an audit.", metavar="FILE", show_default=False)],
    defence: Annotated[
        str | None, typer.Option(help="Which of the plan's defences, or none.", show_default="the only one there is")
    ] = None,
    backend: Annotated[
        Literal["local", "flower"], typer.Option(help="Where participants are: here, or on Flower.")
    ] = "local",
    deploy: Annotated[
        Path | None,
        typer.Option(
            help="Deploy in place of simulating; the folder of certificates and keys, made if need be.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for the model.")] = Path("leaktight-training"),
    seed: Annotated[
        int | None, typer.Option(help="What all randomness derives from.", show_default="the plan's")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Participants that a simulation runs at the same time.", show_default="one per core"),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda", "mps"] | None,
        typer.Option(help="Where tensors live.", show_default="as the plan says"),
    ] = None,
    trust_local_users: Annotated[
        bool, typer.Option("--trust-local-users", help="Let Flower listen where other users of this machine reach it.")
    ] = False,
    table: TableOptions = NONE_GIVEN,
) -> None:
    """Train a federated plan under one defence; the model is the same on every backend.

    Writes the model and what parties revealed at the end (safetensors), and how good it was after each round (JSON).

    Flower does not ask who submits an app. So its programs run in a network of their own, which no other user of this
    machine can enter, and which reaches no other machine. Where the system permits none, and other users are here,
    nothing is started unless you trust them.
    """
    from leaktight.cli.progress import Bar
    from leaktight.core.errors import InvalidValue
    from leaktight.learning.joint import CURVE_FILE, MODEL_FILE, REVEAL_FILE, Round
    from leaktight.plans.plan import change
    from leaktight.plans.training_plan import read_training
    from leaktight.running.scheduler import Step

    if deploy is not None and backend == "local":
        raise InvalidValue(f"`--deploy {deploy}` is for Flower. Add `--backend flower`, or leave it out.")
    if trust_local_users and backend == "local":
        raise InvalidValue("`--trust-local-users` is for Flower. Add `--backend flower`, or leave it out.")
    if workers is not None and workers < 1:
        raise InvalidValue(f"The number of workers must be at least 1. Got {workers} instead.")
    if workers is not None and (backend == "local" or deploy is not None):
        raise InvalidValue(
            f"`--workers {workers}` is for Flower's simulation. Leave it out, or use `--backend flower` without "
            "`--deploy`."
        )
    training = read_training(file, defence, seed, device)
    if table.settings:
        data = table.apply(training.scenario.data)
        training = training.model_copy(update={"scenario": change(training.scenario, data=data)})

    def on_round(round: Round) -> None:
        readings = ", ".join(f"{reading.name} {reading.value:.3f}" for reading in round.readings)
        bar.step(Step(round.played, training.scenario.rounds, 0, f"round {round.played}: {readings}", None))

    with stop_with("what was started is stopped, and there is no model."), Bar(steady=True) as bar:
        _train(training, backend, deploy, out, workers, trust_local_users, on_round)
    curve = json.loads((out / CURVE_FILE).read_bytes())
    utility = ", ".join(f"{reading['name']} {reading['value']:.3f}" for reading in curve["utility"])
    typer.echo(f"Trained with {training.defence} for {training.scenario.rounds} rounds: {utility}.")
    for budget in curve.get("privacy_budget", []):
        typer.echo(f"Privacy budget: {budget}.")
    typer.echo(f"Model: {out / MODEL_FILE}\nCurve: {out / CURVE_FILE}")
    if (out / REVEAL_FILE).exists():
        typer.echo(
            f"Revealed at the end: {out / REVEAL_FILE} (`leaktight.learning.read_trained` puts it and the model "
            "together)"
        )


def _train(
    training: JointTraining,
    backend: str,
    keys: Path | None,
    out: Path,
    workers: int | None,
    trust: bool,
    on_round: OnRound,
) -> None:
    if backend == "local":
        from leaktight.learning.joint import train_here

        train_here(training, out, on_round)
        return
    from leaktight.core.errors import InvalidValue

    try:
        from leaktight.flower.deployment import deploy
        from leaktight.flower.simulation import simulate
    except ImportError as error:
        raise InvalidValue(
            "The backend `flower` needs the package flwr, which is not installed here. "
            "Install `leaktight[flower]`, or use `--backend local`."
        ) from error
    if keys is None:
        simulate(training, out, on_round, workers, trust)
    else:
        deploy(training, out, keys, on_round, trust=trust)
