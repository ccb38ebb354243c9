"""A shelf: ways to start the training."""
