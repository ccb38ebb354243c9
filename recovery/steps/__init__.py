"""A shelf: one verb of the runbook language per file."""
