"""The contract of a check: from the machine that is examined to what was found."""
