"""How parties learn together: gradients, the honest client, aggregation, protocols and the federated scenario."""

from leaktight.learning.aggregate import mean, secure_sum
from leaktight.learning.client import Client
from leaktight.learning.federated import Federated
from leaktight.learning.gradient import gradient
from leaktight.learning.optimiser import Adam, Optimiser, Sgd
from leaktight.learning.protocol import FedAvg, FedSGD, Protocol, RoundRobin, Server, federate
from leaktight.learning.standalone import standalone
from leaktight.learning.task import classification

__all__ = [
    "Adam",
    "Client",
    "FedAvg",
    "FedSGD",
    "Federated",
    "Optimiser",
    "Protocol",
    "RoundRobin",
    "Server",
    "Sgd",
    "classification",
    "federate",
    "gradient",
    "mean",
    "secure_sum",
    "standalone",
]
