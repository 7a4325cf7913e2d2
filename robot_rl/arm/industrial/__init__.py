"""Industrial arms by their vendors' protocols: one file for each kind of controller."""
