"""A policy in other worlds than its own: each axis of a world changed alone, at several strengths."""
