"""The words that all packages share, as frozen values and ports. Does nothing by itself."""
