"""How parties learn together: gradients, honest parties, aggregation, protocols, and the federated and the split scenario."""

from leaktight.learning.aggregate import mean, secure_sum
from leaktight.learning.auc import auc, delong
from leaktight.learning.client import Client
from leaktight.learning.feature_party import FeatureParty
from leaktight.learning.federated import Federated
from leaktight.learning.gradient import gradient
from leaktight.learning.label_party import LabelParty
from leaktight.learning.layer_gradient import layer_gradients
from leaktight.learning.optimiser import Adam, DecayedSgd, Optimiser, Sgd
from leaktight.learning.order import Order
from leaktight.learning.protocol import FedAvg, FedSGD, Protocol, RoundRobin, Server, federate
from leaktight.learning.split import Split
from leaktight.learning.standalone import Standalone, standalone
from leaktight.learning.task import classification

__all__ = [
    "Adam",
    "Client",
    "DecayedSgd",
    "FeatureParty",
    "FedAvg",
    "FedSGD",
    "Federated",
    "LabelParty",
    "Optimiser",
    "Order",
    "Protocol",
    "RoundRobin",
    "Server",
    "Sgd",
    "Split",
    "Standalone",
    "auc",
    "classification",
    "delong",
    "federate",
    "gradient",
    "layer_gradients",
    "mean",
    "secure_sum",
    "standalone",
]
