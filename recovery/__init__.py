"""`recover`: bring a GPU training cluster back after a power loss, and prove it."""

__version__ = "0.1.0"
