"""Where a camera is: on the tool, or beside the arm."""
