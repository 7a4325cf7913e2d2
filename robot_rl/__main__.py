"""`python -m robot_rl` is `robot-rl`."""

import sys

from robot_rl.cli.main import main

if __name__ == "__main__":  # processes of a pool import this again
    sys.exit(main())
