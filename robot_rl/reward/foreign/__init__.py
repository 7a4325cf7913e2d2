"""Labellers that run in an interpreter, or an environment, of their own."""
