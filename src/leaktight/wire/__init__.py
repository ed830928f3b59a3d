"""Split learning between two machines: the same two parties as in one process, over gRPC with mutual TLS."""

from leaktight.wire.party_file import PartyFile, parse_party_file, read_party_file
from leaktight.wire.run import PartyResult, take_part
from leaktight.wire.side import PartyProgress

__all__ = ["PartyFile", "PartyProgress", "PartyResult", "parse_party_file", "read_party_file", "take_part"]
