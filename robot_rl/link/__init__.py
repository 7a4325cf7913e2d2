"""What crosses between actor and learner."""
