"""Examples: one small extension of each family, as a plugin would bring it.

The pages in `docs/extend` show these files.
"""
