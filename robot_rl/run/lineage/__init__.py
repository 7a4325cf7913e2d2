"""Where a run comes from: another run whose networks, replay or demonstrations it begins with, or which it forks."""
