"""Several processes that learn as one; what the others need to know of it, and nothing of what they learn."""
