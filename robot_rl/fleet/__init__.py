"""Several robots, one learner: the plan, both ends of the link, and the processes on this machine."""
