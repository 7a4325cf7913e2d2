"""Arms that are driven by their joints: from set-points of the tool to joint commands. They know no bus."""
