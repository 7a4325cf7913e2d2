"""Arms in a simulated scene: our Franka Research 3, or one that a file describes."""
