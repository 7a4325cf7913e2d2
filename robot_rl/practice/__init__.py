"""Practice without resets: tasks that leave the scene as the next one needs it, learned in turn on one robot."""
