"""Tasks that are done in stages: which one an episode is in, and who judges that."""
