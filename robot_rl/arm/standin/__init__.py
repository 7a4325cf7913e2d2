"""A stand-in for a real arm: everything but the arm itself can be rehearsed with it."""
