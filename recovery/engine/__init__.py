"""Carries a plan out through ports: the loop, the gate, fan-out, retry, resume."""
