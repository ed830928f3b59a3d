"""The search for a transformation policy that hides images from whoever sees their gradients.

The policy keeps the images good to learn from.
"""

from leaktight.search.policy_file import write_policy
from leaktight.search.result import Result
from leaktight.search.run import search
from leaktight.search.settings import Search

__all__ = ["Result", "Search", "search", "write_policy"]
