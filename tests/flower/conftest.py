"""What tests on Flower share: messages and contexts made by hand, and a quiet Flower."""

import os
import signal
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

with warnings.catch_warnings():
    # flwr pins a typer that asks click for old names.
    warnings.simplefilter("ignore", DeprecationWarning)
    pytest.importorskip("flwr")
    import flwr.clientapp
    import flwr.serverapp.strategy  # noqa: F401

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, Metadata, MetricRecord, RecordDict

SERVER, NODE = 1, 7
# An app of its own, with a package of its own.
collect_ignore = ["quickstart"]


def make_context(node=NODE, run=1):
    return Context(run_id=run, node_id=node, node_config={}, state=RecordDict(), run_config={})


def arrays(**values):
    return ArrayRecord({name.replace("__", "."): Array(np.asarray(value)) for name, value in values.items()})


def ask(record, kind="train", node=NODE, **config):
    content = RecordDict({"arrays": record, "config": ConfigRecord({"server-round": 1, **config})})
    return Message(
        content=content,
        metadata=Metadata(
            run_id=1,
            message_id="asked",
            src_node_id=SERVER,
            dst_node_id=node,
            reply_to_message_id="",
            group_id="",
            created_at=time.time(),
            ttl=3600,
            message_type=kind,
        ),
    )


def answering(record, **more):
    """Return an app that answers with these arrays."""

    def app(message, context):
        content = {"arrays": record, "metrics": MetricRecord({"num-examples": 10, "train_loss": 0.5}), **more}
        return Message(RecordDict(content), reply_to=message)

    return app


def values(message, name="arrays"):
    return {key: array.numpy() for key, array in message.content[name].items()}


def end_programs(home):
    """End every process that was started with this Flower home, by its id; return when none is left."""
    mark = f"FLWR_HOME={home}".encode()
    for _ in range(100):
        rest = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in environ_of(path)]
        if not rest:
            return
        for number in rest:
            try:
                os.kill(number, signal.SIGTERM)
            except ProcessLookupError:
                continue
        time.sleep(0.2)
    raise AssertionError(f"processes {rest} are still there")


def environ_of(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="session")
def end_all():
    """Return what ends all programs of a Flower home."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("processes that are left over can be found on Linux only")
    return end_programs


@pytest.fixture
def by_hand():
    """Return the makers of contexts, arrays, questions and answering apps."""
    return SimpleNamespace(context=make_context, arrays=arrays, ask=ask, answering=answering, values=values)
