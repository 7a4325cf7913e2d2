"""What every trial is made of: the arm, set-points, the trace of a motion, the response to it, and the outcome."""
