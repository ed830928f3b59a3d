"""Priors, one file per idea: what examples look like before a message is seen, and coordinates for a search."""

from leaktight.priors.flat import Flat
from leaktight.priors.generic import Generic
from leaktight.priors.network_units import network_units
from leaktight.priors.prior import Coordinates, Prior
from leaktight.priors.public import Public
from leaktight.priors.total_variation import TotalVariation

__all__ = ["Coordinates", "Flat", "Generic", "Prior", "Public", "TotalVariation", "network_units"]
