"""Scripted experts of packages. Each file is loaded in the environment's interpreter: it imports nothing of ours."""
