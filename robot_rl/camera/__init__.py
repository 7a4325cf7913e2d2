"""Cameras: where frames come from, what is shown of them, and what is done when one freezes or is unplugged."""
