"""Flower: defend and audit apps that are there already, and train with our own parties on it. The only importer of flwr."""

from leaktight.flower.quiet import quiet

quiet()

# flwr reads its environment while it is imported, so everything that imports it comes after.
try:
    import flwr  # noqa: F401
except ImportError as error:
    raise ImportError("Flower is not installed. Install it with `pip install leaktight[flower]`.") from error

from leaktight.flower.defence_memory import notes_of  # noqa: E402
from leaktight.flower.defended import Defended, defended  # noqa: E402
from leaktight.flower.protect import Protection, protect  # noqa: E402
from leaktight.flower.record import Recorded, record  # noqa: E402
from leaktight.flower.tap import Tap, tap  # noqa: E402

__all__ = ["Defended", "Protection", "Recorded", "Tap", "defended", "notes_of", "protect", "record", "tap"]
