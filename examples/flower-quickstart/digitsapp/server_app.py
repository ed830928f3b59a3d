"""The server: FedAvg, which writes down every update that it receives."""

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digitsapp.task import Net
from leaktight.flower import record

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for some rounds."""
    config = context.run_config
    strategy = FedAvg(fraction_evaluate=config["fraction-evaluate"])
    if config["record-to"]:
        strategy = record(strategy, config["record-to"], context=context, model=Net)
    torch.manual_seed(0)
    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(Net().state_dict()),
        train_config=ConfigRecord({"lr": config["learning-rate"]}),
        num_rounds=config["num-server-rounds"],
    )
