"""The learner: networks, algorithm, replay-to-gradient loop, checkpoints."""
