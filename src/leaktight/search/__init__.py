"""The search for a transformation policy that hides images from whoever sees their gradients.

The policy keeps the images good to learn from.
"""

from leaktight.search.picture import write_picture
from leaktight.search.policy_file import write_policy
from leaktight.search.resizing import enlarge_for
from leaktight.search.result import Result
from leaktight.search.run import search
from leaktight.search.settings import Search
from leaktight.search.verification import Verification, verify

__all__ = ["Result", "Search", "Verification", "enlarge_for", "search", "verify", "write_picture", "write_policy"]
