"""Environments of others behind `Environment`: gymnasium, dm_control, Meta-World, in this interpreter or another."""
