"""What every node is made of: base class, parameters, spinning."""
