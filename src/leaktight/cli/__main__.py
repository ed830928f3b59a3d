"""`python -m leaktight.cli` is `leaktight`."""

import sys

from leaktight.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
