"""The command line: parses, calls, shows. Nothing here imports torch before a command needs it."""
