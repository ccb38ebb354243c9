"""Which nodes test together, and what the results say about nodes, rails and leaves."""
