"""What commands are made of: parsers, flags that several share, and printed answers."""
