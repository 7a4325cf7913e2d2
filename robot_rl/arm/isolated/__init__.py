"""Drivers in a process of their own: a vendor's library that crashes takes nothing else with it."""
