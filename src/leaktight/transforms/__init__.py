"""Transformations: fifty functions that change an image, and the policies made of them."""

from leaktight.transforms.crop_flip import crop_flip
from leaktight.transforms.dataset import PolicyTransform
from leaktight.transforms.library import LIBRARY, Function, same_as
from leaktight.transforms.operation import OPERATIONS, Operation
from leaktight.transforms.outcome import outcomes
from leaktight.transforms.policy import PUBLISHED, Policy, read_policy

__all__ = [
    "LIBRARY",
    "OPERATIONS",
    "PUBLISHED",
    "Function",
    "Operation",
    "Policy",
    "PolicyTransform",
    "crop_flip",
    "outcomes",
    "read_policy",
    "same_as",
]
