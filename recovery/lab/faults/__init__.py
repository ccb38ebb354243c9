"""A shelf: what can be broken on a node, as data. Each fault is a frozen `Fault` constant."""
