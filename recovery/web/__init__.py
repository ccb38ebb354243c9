"""The runs as a small web page: read-only, live, strict. It is handed what it may read."""
