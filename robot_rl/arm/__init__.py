"""Arms behind one interface: what drivers measure and are told, and what is done about it for all of them alike."""
