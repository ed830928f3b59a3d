"""How parties learn together: gradients, honest parties, aggregation, protocols, federated and split scenarios."""

from leaktight.learning.aggregate import mean, secure_sum
from leaktight.learning.checkpoint import read_checkpoint, write_checkpoint
from leaktight.learning.client import Client
from leaktight.learning.feature_party import FeatureParty
from leaktight.learning.federated import Federated
from leaktight.learning.gradient import gradient
from leaktight.learning.joint import read_trained
from leaktight.learning.label_party import LabelParty
from leaktight.learning.layer_gradient import layer_gradients
from leaktight.learning.optimiser import Adam, DecayedSgd, Optimiser, Sgd
from leaktight.learning.order import BatchOrder
from leaktight.learning.protocol import FedAvg, FedSGD, Protocol, RoundRobin, Server, federate
from leaktight.learning.schedule import ByProperty, Schedule, Shuffled
from leaktight.learning.split import Split
from leaktight.learning.standalone import Standalone, standalone
from leaktight.learning.task import classification

__all__ = [
    "Adam",
    "BatchOrder",
    "ByProperty",
    "Client",
    "DecayedSgd",
    "FeatureParty",
    "FedAvg",
    "FedSGD",
    "Federated",
    "LabelParty",
    "Optimiser",
    "Protocol",
    "RoundRobin",
    "Schedule",
    "Server",
    "Sgd",
    "Shuffled",
    "Split",
    "Standalone",
    "classification",
    "federate",
    "gradient",
    "layer_gradients",
    "mean",
    "read_checkpoint",
    "read_trained",
    "secure_sum",
    "standalone",
    "write_checkpoint",
]
