"""Statistics: what two measurements say about their difference, on the same rows or apart."""

from leaktight.statistics.difference import minus
from leaktight.statistics.outcomes import Outcomes, pack_hits, pack_ranks, unpack
from leaktight.statistics.paired import newcombe, paired_interval

__all__ = ["Outcomes", "minus", "newcombe", "pack_hits", "pack_ranks", "paired_interval", "unpack"]
