"""Split learning between two machines: the same two parties as in one process, over gRPC with mutual TLS."""

from leaktight.wire.run import Outcome, take_part
from leaktight.wire.settings import PartyFile, parse_party_file, read_party_file
from leaktight.wire.side import Standing

__all__ = ["Outcome", "PartyFile", "Standing", "parse_party_file", "read_party_file", "take_part"]
