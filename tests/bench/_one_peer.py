"""One library as a client, run by the Python that has it: `python _one_peer.py LIBRARY job.json`.

Needs nothing of this project, since the library may live in another environment.
"""

import asyncio
import json
import os
import sys
from pathlib import Path


def told(job, failed):
    """Says how many answers were bad, and leaves without tidying up."""
    print(f"{failed} of {len(job['nodes']) * len(job['commands'])} failed", file=sys.stderr)
    sys.stderr.flush()
    os._exit(1 if failed > job["may_fail"] else 0)


def asyncssh(job):
    asyncio.run(_asyncssh(job))


async def _asyncssh(job):
    import asyncssh

    options = asyncssh.SSHClientConnectionOptions(
        username=job["user"],
        client_keys=[asyncssh.read_private_key(job["key"])],
        known_hosts=asyncssh.read_known_hosts(job["known_hosts"]),
        agent_path=None,
        config=None,
        connect_timeout=job["limit_s"],
        login_timeout=job["limit_s"],
    )
    connections, turn = {}, asyncio.Semaphore(64)

    async def run(node, command):
        async with turn:
            if node not in connections:
                connections[node] = await asyncssh.connect(node, job["port"], options=options)
        done = await asyncio.wait_for(connections[node].run(command), job["limit_s"])
        return done.exit_status != 0

    failed = 0
    for command in job["commands"]:
        work = [run(node, command) for node in job["nodes"]]
        failed += sum(map(bool, await asyncio.gather(*work, return_exceptions=True)))
    for connection in connections.values():
        connection.close()
    told(job, failed)


def pssh(job):
    import gevent
    from pssh.clients.native import ParallelSSHClient

    client = ParallelSSHClient(
        job["nodes"], user=job["user"], port=job["port"], pkey=job["key"], pool_size=64,
        num_retries=1, allow_agent=False, timeout=job["limit_s"],
    )  # fmt: skip

    def read(output):
        if output.exception:
            return True
        for _ in output.stdout:
            pass
        return output.exit_code != 0

    failed = 0
    for command in job["commands"]:
        outputs = client.run_command(command, stop_on_errors=False, read_timeout=job["limit_s"])
        readers = [gevent.spawn(read, output) for output in outputs]
        gevent.joinall(readers)
        failed += sum(bool(r.value or r.exception) for r in readers)
    told(job, failed)


def fabric(job):
    import fabric

    group = fabric.ThreadingGroup(
        *job["nodes"], user=job["user"], port=job["port"],
        connect_kwargs={"key_filename": job["key"], "timeout": job["limit_s"]},
    )  # fmt: skip
    failed = 0
    for command in job["commands"]:
        try:
            results = group.run(command, hide=True, warn=True)
        except fabric.exceptions.GroupException as error:
            results = error.result
        failed += sum(getattr(r, "exited", 1) != 0 for r in results.values())
    group.close()
    told(job, failed)


if __name__ == "__main__":
    globals()[sys.argv[1]](json.loads(Path(sys.argv[2]).read_text()))
