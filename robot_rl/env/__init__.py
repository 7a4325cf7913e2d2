"""The robot-side loop: contracts, environment, safety, intervention."""
