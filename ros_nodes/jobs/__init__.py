"""What `actor_node` does: one job a file."""
