"""The participant: trains on its own digits, and defends its update before it leaves."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable

from digitsapp.task import Net, load_data
from digitsapp.task import test as test_fn
from digitsapp.task import train as train_fn
from leaktight.defences import GaussianNoise, LocalDP, TopK
from leaktight.flower import describe_training, keep_truth, protect

# An update of one step has a norm of about 0.05 here; the log of `protect` says so.
DEFENCES = {
    "noise": protect(GaussianNoise(std=0.02, clip=0.05)),
    "top-k": protect(TopK(share=0.1, noise=0.001)),
    "local-dp": protect(LocalDP(clip=0.05, multiplier=1.0)),
}


def defend(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Defend as the run's configuration says; an app with one defence writes `mods=[protect(...)]` and is done."""
    defence = context.run_config["defence"]
    return call_next(message, context) if defence == "none" else DEFENCES[defence](message, context, call_next)


app = ClientApp(mods=[defend])


def load(message: Message, context: Context):
    """Return the network as it was received, and this node's data."""
    net = Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    node, batch_size = context.node_config, context.run_config["batch-size"]
    return net, *load_data(node["partition-id"], node["num-partitions"], batch_size)


@app.train()
def train(message: Message, context: Context) -> Message:
    """Take a few steps and answer with the new parameters."""
    net, loader, _ = load(message, context)
    steps = context.run_config["local-steps"]
    optimizer = torch.optim.SGD(net.parameters(), lr=message.content["config"]["lr"])
    images, labels, loss = train_fn(net, loader, optimizer, steps)
    if context.run_config["truth-to"]:
        # Only to grade an audit of your own: nothing of this is sent.
        keep_truth(context.run_config["truth-to"], message, context, images, labels)
    content = RecordDict(
        {
            "arrays": ArrayRecord(net.state_dict()),
            "metrics": MetricRecord({"train_loss": loss, "num-examples": len(labels)}),
            # How the update was made, for the server that records it; the digits are not normalised.
            "training": describe_training(optimizer, loader, local_steps=steps, mean=()),
        }
    )
    return Message(content=content, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Evaluate the received parameters on the test set."""
    net, _, loader = load(message, context)
    loss, accuracy = test_fn(net, loader)
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(loader.dataset)})
    return Message(content=RecordDict({"metrics": metrics}), reply_to=message)
