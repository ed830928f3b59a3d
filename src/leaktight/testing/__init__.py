"""Checks that whoever writes a plugin can import, and toys with known answers. None of them needs a test framework."""

from leaktight.testing.attacks import check_attack
from leaktight.testing.channels import check_channel
from leaktight.testing.conformance import ConformanceError, installed_classes, sample
from leaktight.testing.cut import cut_message, cut_run, cut_step
from leaktight.testing.defences import check_defence
from leaktight.testing.hooks import toy_step
from leaktight.testing.metrics import Trial, check_metric, reconstruction_trial
from leaktight.testing.seats import active_run, squares
from leaktight.testing.toys import (
    mark_property,
    normed_task,
    null_run,
    property_run,
    toy_batch,
    toy_message,
    toy_parameters,
    toy_run,
    toy_task,
)
from leaktight.testing.values import check_value

__all__ = [
    "ConformanceError",
    "Trial",
    "active_run",
    "check_attack",
    "check_channel",
    "check_defence",
    "check_metric",
    "check_value",
    "cut_message",
    "cut_run",
    "cut_step",
    "installed_classes",
    "mark_property",
    "normed_task",
    "null_run",
    "property_run",
    "reconstruction_trial",
    "sample",
    "squares",
    "toy_batch",
    "toy_message",
    "toy_parameters",
    "toy_run",
    "toy_step",
    "toy_task",
]
