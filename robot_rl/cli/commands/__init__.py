"""One file for each command of `robot-rl`, or group of commands; `robot_rl.cli.main` puts them together."""
