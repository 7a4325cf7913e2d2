"""The command line: parsers, wiring and printed answers."""
