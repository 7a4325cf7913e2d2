"""Algorithms: SAC, IQL and behaviour cloning, with their losses and optimizer."""
