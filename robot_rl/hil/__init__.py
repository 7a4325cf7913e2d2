"""A person in a session: set-up, teleoperation, demonstrations, local and remote."""
