"""A shelf: ways to carry a command to a node."""
