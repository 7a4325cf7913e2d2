"""The command line: `main` puts the commands together."""
