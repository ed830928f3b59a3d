"""Where examples come from, and who owns which."""

from leaktight.data.attributes import Attributes
from leaktight.data.by_class import ByClass
from leaktight.data.cifar import Cifar
from leaktight.data.class_property import ClassProperty
from leaktight.data.columns import Columns
from leaktight.data.criteo import Criteo
from leaktight.data.digits import Digits, Parity, RareDigit
from leaktight.data.dirichlet import Dirichlet
from leaktight.data.factory import Factory
from leaktight.data.files import FileSource, Location
from leaktight.data.folder import ImageFolder
from leaktight.data.held_out import HeldOut
from leaktight.data.idx import Idx
from leaktight.data.in_memory import InMemory
from leaktight.data.npz import Npz
from leaktight.data.partition import Equal, Partition
from leaktight.data.photos import Photos
from leaktight.data.source import Data, Source
from leaktight.data.svhn import Svhn
from leaktight.data.table import Csv
from leaktight.data.test_part import TestPart
from leaktight.data.text import from_text

__all__ = [
    "Attributes",
    "ByClass",
    "Cifar",
    "ClassProperty",
    "Columns",
    "Criteo",
    "Csv",
    "Data",
    "Digits",
    "Dirichlet",
    "Equal",
    "Factory",
    "FileSource",
    "HeldOut",
    "Idx",
    "ImageFolder",
    "InMemory",
    "Location",
    "Npz",
    "Parity",
    "Partition",
    "Photos",
    "RareDigit",
    "Source",
    "Svhn",
    "TestPart",
    "from_text",
]
