"""Which nodes are started together, and the supervision of their processes."""
