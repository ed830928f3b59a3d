"""Statistics: what two measurements on the same rows say about their difference."""

from leaktight.statistics.outcomes import Outcomes, pack_hits, pack_ranks, pack_shares, unpack
from leaktight.statistics.paired import newcombe, paired_interval

__all__ = ["Outcomes", "newcombe", "pack_hits", "pack_ranks", "pack_shares", "paired_interval", "unpack"]
