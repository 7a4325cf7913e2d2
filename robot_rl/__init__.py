"""robot_rl: teach a real arm a manipulation skill in an hour or two of robot time."""

__version__ = "0.1.0"
