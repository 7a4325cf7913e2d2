"""Commissioning: the first slow motions of an arm, each with a person's consent, and what they show."""
