"""The stand-in tools of a node: executables that print its screens. First on every node's PATH."""
