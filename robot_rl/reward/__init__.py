"""Rewards from camera frames: queries, backends that answer them, labels, classifiers and their known error."""
