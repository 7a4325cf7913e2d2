"""Rewards from what was seen: questions about frames, who answers them, and labels with a known error."""
