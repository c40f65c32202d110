"""What stands in for a command whose input and output are recorded."""
