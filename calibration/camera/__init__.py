"""Boards, corners and the lens of a camera."""
