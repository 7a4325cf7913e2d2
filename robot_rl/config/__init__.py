"""Configuration: what can be set, and how it is loaded."""
