"""python -m kernwright."""

import sys

from kernwright.cli import main

sys.exit(main())
