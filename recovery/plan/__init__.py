"""Runbook text -> Runbook -> Plan. Pure: a dry run is this package and nothing else."""
