"""``python -m stepladder`` is the command ``stepladder``."""

import sys

from stepladder.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
