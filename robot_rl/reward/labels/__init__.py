"""Labels of episodes: annotating, applying, training heads on them, and the labeller process."""
