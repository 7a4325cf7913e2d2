"""What stands where in a cell: mounts of cameras, shapes of arms, and what keeps arms apart."""
