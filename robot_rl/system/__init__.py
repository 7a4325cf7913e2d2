"""What every program needs of an operating system: atomic files, locks, child processes, progress."""
