"""Shaping of a training by the progress that a head sees, and the verdict on such a head."""
