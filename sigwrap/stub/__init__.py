"""What stands in for an intercepted command."""
