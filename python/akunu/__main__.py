"""`python -m akunu` is the command `akunu`."""

from __future__ import annotations

import sys

from akunu.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
