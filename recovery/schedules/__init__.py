"""A shelf: systems that start commands at a time, one file each."""
