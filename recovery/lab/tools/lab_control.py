"""Sends one request to the lab's control socket: ``lab_control.py VERB NODE``."""

import json
import os
import socket
import sys


def main() -> None:
    """Sends it and waits for the answer (which a restarted node does not live to see)."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.environ["RECOVER_LAB_CONTROL"])
        link.sendall(json.dumps({"verb": sys.argv[1], "nodes": sys.argv[2:]}).encode() + b"\n")
        link.recv(65536)


main()
