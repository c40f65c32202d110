"""The one table of mediated calls."""
