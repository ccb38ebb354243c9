"""Inventory: reading, selecting, folding, profiles."""
