"""Inventory text -> Inventory; selecting and folding nodes; hardware profiles."""
