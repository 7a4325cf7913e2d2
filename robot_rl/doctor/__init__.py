"""`robot-rl doctor`: what of this machine and its arm keeps a training from running well, each with its cure."""
