"""Checks of an arm that stands, through its driver: nothing is commanded."""
