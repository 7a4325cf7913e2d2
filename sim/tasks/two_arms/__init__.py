"""Simulated tasks of two arms."""
