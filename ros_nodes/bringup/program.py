"""Programs that launch files run, as `ros2 launch` itself may have another Python: they answer in JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from robot_rl.errors import RobotRLError


def answer(make: Callable[[], object]) -> int:
    """Print what is made, as JSON, or the error of a user, and return the exit code of the program."""
    try:
        print(json.dumps(make()))
    except RobotRLError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
