"""Replay in memory: episodes in, samples for the learner out."""
