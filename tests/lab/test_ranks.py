"""Ranks that find each other, also where rank 0's port was somebody's for a moment."""

import socket
import threading

from recovery.lab.jobs.ranks import Ranks


def test_a_port_that_is_taken_for_a_moment_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as borrower:
        port = borrower.getsockname()[1]
        sums: dict[int, list[int]] = {}

        def take_part(rank: int) -> None:
            ranks = Ranks(rank, 2, "127.0.0.1", port)
            sums[rank] = ranks.sum([rank + 1])
            for link in ranks._links:
                link.close()

        first = threading.Thread(target=take_part, args=(0,))
        first.start()
        assert first.is_alive()
    other = threading.Thread(target=take_part, args=(1,))
    other.start()
    first.join(60)
    other.join(60)

    assert sums == {0: [3], 1: [3]}
