"""Hosts in network namespaces with a real OpenSSH sshd each: for tests, root on Linux only.

See `tests/README.md`. `Bed` makes them, `Host` has power, a console and the faults of one host,
`Controller` drives `recover` from the hub that all hosts are plugged into.
"""
