"""The papers' networks and a person's own, each as body + head."""

from leaktight.models.alexnet import AlexNet
from leaktight.models.convnet import ConvNet
from leaktight.models.deep_dlnet import DeepDLNet
from leaktight.models.dlnet import DLNet
from leaktight.models.factory import Factory, wrap
from leaktight.models.fcnet import FCNet
from leaktight.models.generator import Generator
from leaktight.models.halves import Halves, Top, halves
from leaktight.models.in_memory import InMemory
from leaktight.models.lenet import LeNet
from leaktight.models.mlp import MLP
from leaktight.models.network import Network
from leaktight.models.obstacles import obstacles
from leaktight.models.resnet10 import ResNet10
from leaktight.models.resnet20 import ResNet20
from leaktight.models.stack import FaceAlexNet, VGG11Net
from leaktight.models.text import from_text
from leaktight.models.vgg16 import VGG16
from leaktight.models.wide_deep import WideDeep

__all__ = [
    "MLP",
    "VGG16",
    "AlexNet",
    "ConvNet",
    "DLNet",
    "DeepDLNet",
    "FCNet",
    "FaceAlexNet",
    "Factory",
    "Generator",
    "Halves",
    "InMemory",
    "LeNet",
    "Network",
    "ResNet10",
    "ResNet20",
    "Top",
    "VGG11Net",
    "WideDeep",
    "from_text",
    "halves",
    "obstacles",
    "wrap",
]
