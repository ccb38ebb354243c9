"""Ranks that talk over TCP: everyone sends its part to rank 0 and gets the sum back."""

import errno
import os
import socket
import struct
import time
from array import array

_PATIENCE_S = 60.0
_RETRY_S = 0.02


class Ranks:
    """This process among its peers."""

    def __init__(self, rank, size, address, port):
        self.rank, self.size = rank, size
        self._links = []
        if size == 1:
            return
        if rank == 0:
            self._links = self._gather_peers(address, port)
        else:
            self._links = [self._join(address, port)]

    def _gather_peers(self, address, port):
        peers = {}
        with self._listener(address, port) as listener:
            listener.settimeout(_PATIENCE_S)
            while len(peers) < self.size - 1:
                link, _ = listener.accept()
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                (rank,) = struct.unpack("<i", _receive(link, 4))
                peers[rank] = link
        return [peers[r] for r in sorted(peers)]

    def _listener(self, address, port):
        """The port of rank 0; somebody's connection may have borrowed it for a moment."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return socket.create_server((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                    raise
                time.sleep(_RETRY_S)

    def _join(self, address, port):
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                link = socket.create_connection((address, port), timeout=_PATIENCE_S)
                break
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise
                time.sleep(_RETRY_S)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.settimeout(None)
        link.sendall(struct.pack("<i", self.rank))
        return link

    def sum(self, numbers):
        """The sum over all ranks of whole numbers, the same on every rank.

        Raises:
            ConnectionError: a peer is gone.
        """
        if self.size == 1:
            return numbers
        part = array("q", numbers)
        n_bytes = len(part) * part.itemsize
        if self.rank:
            self._links[0].sendall(part.tobytes())
            return _numbers(_receive(self._links[0], n_bytes))
        whole = list(numbers)
        for link in self._links:
            whole = [a + b for a, b in zip(whole, _numbers(_receive(link, n_bytes)))]
        answer = array("q", whole).tobytes()
        for link in self._links:
            link.sendall(answer)
        return whole


def from_environment():
    """The ranks as a launcher describes them: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT."""
    return Ranks(
        int(os.environ.get("RANK", "0")),
        int(os.environ.get("WORLD_SIZE", "1")),
        os.environ.get("MASTER_ADDR", "127.0.0.1"),
        int(os.environ.get("MASTER_PORT", "29500")),
    )


def _receive(link, n_bytes):
    parts, left = [], n_bytes
    while left:
        data = link.recv(left)
        if not data:
            raise ConnectionError("a peer closed its connection")
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def _numbers(data):
    numbers = array("q")
    numbers.frombytes(data)
    return list(numbers)
