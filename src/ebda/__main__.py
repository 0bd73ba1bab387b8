"""``python -m ebda``: the command line."""

import sys

from ebda.cli import main

sys.exit(main())
