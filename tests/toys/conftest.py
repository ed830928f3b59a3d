"""The toys are a plugin, found as any installed one is; pytest must not import them under a second name."""

collect_ignore_glob = ["leaktight_toys.py"]
