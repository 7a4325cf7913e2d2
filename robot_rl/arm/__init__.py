"""Arms behind one interface: the driver, and what is common to all drivers."""
