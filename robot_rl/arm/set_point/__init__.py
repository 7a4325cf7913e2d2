"""Set-points of the tool: the cap on them, the way to them, and the motion towards them. They know no arm."""
