"""What a run promises, held on real OpenSSH: `recover` as a subprocess on hosts of the testbed."""
