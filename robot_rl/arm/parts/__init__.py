"""Grippers and force sensors with a connection of their own, and an arm that is composed of them."""
