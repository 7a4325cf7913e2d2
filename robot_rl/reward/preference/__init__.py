"""Rewards from preferences between pairs."""
