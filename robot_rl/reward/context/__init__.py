"""What a model is shown besides the query: examples whose progress is known."""
