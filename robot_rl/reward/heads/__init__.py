"""Heads on frozen features: success and progress."""
