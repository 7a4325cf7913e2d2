"""The executables: one node a file."""
