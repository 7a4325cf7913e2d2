"""The one schema, the store on disk, and replay in memory."""
