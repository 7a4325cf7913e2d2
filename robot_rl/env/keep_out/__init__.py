"""What keeps the arms of one cell apart."""
