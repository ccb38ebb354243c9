"""A shelf: one click command per file, loaded only when named."""
