"""Trials of an arm, one concern a file: from the arm to what was found and measured."""
