"""Benchmarks of the learner, replay and the store; found by entry point."""
