"""Settings of the reward of an episode."""
