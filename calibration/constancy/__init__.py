"""Tests that what is calibrated did not change while it was recorded."""
