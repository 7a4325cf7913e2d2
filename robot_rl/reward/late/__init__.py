"""Rewards that arrive after their episode, from a labeller beside the training."""
