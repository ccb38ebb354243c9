"""One node's part of a collective test over torch.distributed, without MPI.

Sent on standard input of ``python3 -``. Forks one process a GPU (or one on the CPU, with gloo),
meets the other nodes at the address given, times the collective, checks its values, and prints on
rank 0 what ``-J`` of nccl-tests would write, so that one reader serves both.
"""

import argparse
import datetime
import fcntl
import json
import os
import socket
import struct
import sys
import time
import traceback

FACTORS = {
    "all_reduce": lambda n: 2.0 * (n - 1) / n,
    "alltoall": lambda n: (n - 1.0) / n,
    "all_gather": lambda n: (n - 1.0) / n,
    "reduce_scatter": lambda n: (n - 1.0) / n,
    "sendrecv": lambda n: 1.0,
}
UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
WARMUPS, ITERATIONS = 1, 4
SIOCGIFADDR = 0x8915  # linux/sockios.h


def read_options(words):
    """The options; the engine gives all of them."""
    parser = argparse.ArgumentParser(prog="torch_mesh")
    parser.add_argument("--collective", default="all_reduce", choices=["all_reduce", "alltoall"])
    parser.add_argument("--size", default="64M")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--node-rank", type=int, default=0)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=29400)
    parser.add_argument("--timeout", type=float, default=60.0)
    return parser.parse_args(words)


def size_of(text):
    """Bytes of ``8G``, ``64M``, ``1048576``."""
    unit = text[-1:].upper()
    return int(float(text[:-1]) * UNITS[unit]) if unit in UNITS else int(text)


def main(words):
    """Forks one process a GPU and returns the worst of their statuses."""
    options = read_options(words)
    name_interface(options.address)
    sys.stdout.flush()
    children = {}
    for local in range(options.gpus):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run_rank(options, local)
                status = 0
            except (ImportError, OSError, RuntimeError, ValueError) as error:
                host = socket.gethostname()
                sys.stderr.write(
                    "%s: Test NCCL failure torch_mesh.py:1 '%s'\n" % (host, one_line(error))
                )
            finally:
                if sys.exc_info()[0] is not None:
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        children[child] = local
    return wait_for(children)


def name_interface(address):
    """Tells gloo and NCCL which interface leads to the others, unless somebody has.

    Left alone, gloo takes the one that this node's own name resolves to: loopback, on many nodes.
    """
    found = interface_to(address)
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        if found:
            os.environ.setdefault(name, found)


def interface_to(address):
    """The interface whose address is used to reach another one; empty when that is not clear."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # sends nothing
            ours = probe.getsockname()[0]
            for _, name in socket.if_nameindex():
                asked = struct.pack("256s", name.encode()[:15])
                if own_address(probe, asked) == ours:
                    return name
    except OSError:
        pass
    return ""


def own_address(probe, asked):
    """The IPv4 address of an interface; empty when it has none."""
    try:
        return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), SIOCGIFADDR, asked)[20:24])
    except OSError:
        return ""


def one_line(error):
    """An error in one line, without the quotes that frame it."""
    return " ".join(str(error).split())[:300].replace("'", "")


def wait_for(children):
    """The worst status of all; one that fails ends the others, which would wait for it."""
    worst = 0
    while children:
        child, status = os.wait()
        if child not in children:
            continue
        del children[child]
        if status != 0:
            worst = 1
            for other in children:
                os.kill(other, 15)
    return worst


def run_rank(options, local):
    """One rank from rendezvous to report."""
    import torch
    import torch.distributed as dist

    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(local % torch.cuda.device_count())
    rank = options.node_rank * options.gpus + local
    ranks = options.nodes * options.gpus
    limit = datetime.timedelta(seconds=options.timeout)
    store = dist.TCPStore(options.address, options.port, ranks, rank == 0, limit)
    backend = "nccl" if cuda else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, timeout=limit)
    measured = measure(torch, dist, options, rank, ranks, cuda)
    devices = gather_devices(torch, store, rank, ranks, local, cuda)
    if rank == 0:
        print(json.dumps(report(options, ranks, measured, devices)))
    dist.barrier()
    dist.destroy_process_group()


def measure(torch, dist, options, rank, ranks, cuda):
    """Seconds of one collective, the slowest rank's mean, and wrong elements over all ranks."""
    where = torch.device("cuda" if cuda else "cpu")
    count = max(size_of(options.size) // 4 // ranks, 1) * ranks
    run, check = prepare(torch, dist, options.collective, count, rank, ranks, where)
    for _ in range(WARMUPS):
        run()
    finish(torch, cuda)
    dist.barrier()
    began = time.monotonic()
    for _ in range(ITERATIONS):
        run()
    finish(torch, cuda)
    seconds = torch.tensor([(time.monotonic() - began) / ITERATIONS], device=where)
    wrong = torch.tensor([float(check())], device=where)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    dist.all_reduce(wrong, op=dist.ReduceOp.SUM)
    return {"seconds": float(seconds[0]), "wrong": float(wrong[0]), "count": count}


def finish(torch, cuda):
    """Waits until the GPU has done what was asked."""
    if cuda:
        torch.cuda.synchronize()


def prepare(torch, dist, collective, count, rank, ranks, where):
    """The collective as a function, and a check of one fresh run: how many elements are wrong."""
    if collective == "alltoall":
        out = torch.full((count,), float(rank), device=where)
        into = torch.empty_like(out)
        wanted = torch.arange(ranks, device=where, dtype=torch.float32)
        wanted = wanted.repeat_interleave(count // ranks)

        def exchange():
            if where.type == "cuda":
                dist.all_to_all_single(into, out)
            else:
                exchange_by_pairs(torch, dist, into, out, rank, ranks)

        def check_exchange():
            into.fill_(-1.0)
            exchange()
            return (into != wanted).sum()

        return exchange, check_exchange
    work = torch.zeros(count, device=where)

    def reduce():
        dist.all_reduce(work)

    def check_reduce():
        work.fill_(float(rank + 1))
        dist.all_reduce(work)
        return (work != ranks * (ranks + 1) / 2).sum()

    return reduce, check_reduce


def exchange_by_pairs(torch, dist, into, out, rank, ranks):
    """All to all by sends and receives: not every gloo has the collective."""
    ours, theirs = out.chunk(ranks), list(into.chunk(ranks))
    theirs[rank].copy_(ours[rank])
    waiting = []
    for other in range(ranks):
        if other != rank:
            waiting.append(dist.isend(ours[other].contiguous(), other))
            waiting.append(dist.irecv(theirs[other], other))
    for one in waiting:
        one.wait()


def gather_devices(torch, store, rank, ranks, local, cuda):
    """What every rank runs on, in rank order; by the store, as gathering objects needs NumPy."""
    mine = {
        "rank": rank,
        "group": 0,
        "pid": os.getpid(),
        "hostname": socket.gethostname(),
        "device": local,
        "device_info": torch.cuda.get_device_name() if cuda else "cpu",
    }
    store.set("device/%d" % rank, json.dumps(mine))
    if rank:
        return [mine]
    return [json.loads(store.get("device/%d" % other)) for other in range(ranks)]


def report(options, ranks, measured, devices):
    """The document of ``-J``, version 3, with one row."""
    n_bytes = measured["count"] * 4
    algbw = n_bytes / measured["seconds"] / 1e9
    busbw = algbw * FACTORS[options.collective](ranks)
    wrong = measured["wrong"]
    row = {"time": measured["seconds"] * 1e6, "alg_bw": algbw, "bus_bw": busbw, "nwrong": wrong}
    return {
        "version": 3,
        "args": ["%s_perf" % options.collective, "torch_mesh"],
        "config": {"nthreads": 1, "ngpus": 1, "devices": devices},
        "results": [
            {
                "size": n_bytes,
                "count": measured["count"],
                "type": "float",
                "out_of_place": row,
                "in_place": {},
            }
        ],
        "out_of_bounds": {"count": int(bool(wrong)), "okay": "true" if not wrong else "false"},
        "average_bus_bandwidth": {"bandwidth": busbw, "okay": "unchecked"},
        "errors": [""],
        "end_time": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
