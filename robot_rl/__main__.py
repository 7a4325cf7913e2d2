"""`robot-rl`, also as `python -m robot_rl`: until all is imported, Ctrl-C ends it as afterwards, in one line."""

import sys


def main() -> int:
    """Run the command line; return the exit code."""
    try:
        from robot_rl.cli.main import main as command_line

        return command_line()
    except KeyboardInterrupt:
        print("robot-rl: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":  # processes of a pool import this again
    sys.exit(main())
