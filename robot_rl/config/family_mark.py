"""What marks the name of an environment of others; apart from the rest, so that a name is checked without settings."""

FAMILY_MARK = ":"
"""Between family and name: `gym:Pendulum-v1`."""
