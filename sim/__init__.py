"""The simulated robot and its tasks, behind the contracts of `robot_rl`."""
