"""The entries: every module has PROGRAMS."""
