"""All robots on one page: how each of them does, and one button that stops them all."""
