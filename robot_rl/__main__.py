"""`python -m robot_rl` is `robot-rl`."""

import sys

from robot_rl.cli import main

sys.exit(main())
