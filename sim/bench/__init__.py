"""Benchmarks of the simulation."""
