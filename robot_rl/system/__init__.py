"""The operating system for all programs: atomic files, locks, child processes, kinds of files, progress."""
