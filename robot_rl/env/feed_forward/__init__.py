"""What an arm's controller is given beside a set-point: a wrench, and what bounds it."""
