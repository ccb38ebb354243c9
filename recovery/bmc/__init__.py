"""The ways to ask a BMC: a shelf, one file each."""
