"""Run the command line with ``python -m refmq``."""

import sys

from refmq.cli import main

sys.exit(main())
