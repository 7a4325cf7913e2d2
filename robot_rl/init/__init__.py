"""`robot-rl init`: from what is plugged in, and a person's answers, to the files of a robot and a task."""
