"""One training, from configuration to summary."""
