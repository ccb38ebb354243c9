"""Files that are sent to a node and run there; stdlib only, import nothing of ours."""
