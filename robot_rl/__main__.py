"""`python -m robot_rl` is `robot-rl`."""

import sys

from robot_rl.cli.main import main

sys.exit(main())
