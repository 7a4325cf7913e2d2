"""A training beside which nobody is, and what a practice shares with it: when a person is needed, and how they come."""
