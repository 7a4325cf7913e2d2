"""The operator console: a page in the browser that shows the robot and through which one person leads it."""
