"""The link between actor and learner in two processes: messages, transport and both ends."""
