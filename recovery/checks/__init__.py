"""A shelf: one question about a node per file."""
