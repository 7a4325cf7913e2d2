"""`robot-rl new-task`: a new simulated task as a package of one's own, which trains as it is."""
