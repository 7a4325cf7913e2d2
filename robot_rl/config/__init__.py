"""What can be set: settings of runs and nodes, how to load, check and describe them.

`FAMILY_MARK` stands here, apart from the settings, so that a name is checked without loading them.
"""

FAMILY_MARK = ":"
"""Between the family of an environment of others and its name: `gym:Pendulum-v1`."""
