"""Captures: what crossed the wire in a training run that is not ours, written down, and audited without its data."""

from leaktight.captures.as_captured import AsCaptured
from leaktight.captures.capture import Capture, read_captures, write_capture
from leaktight.captures.known import Known
from leaktight.captures.manifest import Manifest
from leaktight.captures.recorder import Recorder
from leaktight.captures.scenario import Captured
from leaktight.captures.truth import read_truth, write_truth

__all__ = [
    "AsCaptured",
    "Capture",
    "Captured",
    "Known",
    "Manifest",
    "Recorder",
    "read_captures",
    "read_truth",
    "write_capture",
    "write_truth",
]
