"""A person's devices, and how their readings become actions."""
