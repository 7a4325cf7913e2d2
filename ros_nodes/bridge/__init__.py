"""The contracts of `robot_rl` over topics."""
