"""Plots, films and contact sheets."""
