"""The edge that keeps: journal, evidence, lock."""
