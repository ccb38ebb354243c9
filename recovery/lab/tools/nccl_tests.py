"""Stand-in for nccl-tests: the tables of the real program, the figures of a scripted fabric.

Runs under the node's python3 without site-packages. The model of the fabric: one node alone moves
480 GB/s (in-switch reduction) or 367 GB/s (ring); several nodes are bound by their slowest adapter,
a slow pair by its slow path; NVLinks that are down cost their share.
Source: nccl-tests 2.17 (text and ``-J`` layout); figures as published for 8 x H100, 8 x 400 Gb/s.
"""

import hashlib
import json
import os
import sys
import time

PEAK_ALONE, PEAK_RING, PEAK_PAIR, PEAK_MANY = 480.0, 367.0, 384.0, 371.0
SLOW_PATH = 0.22
BUS = ("0f", "2d", "44", "5b", "89", "a8", "c0", "d8")
FACTORS = {
    "all_reduce_perf": lambda n: 2 * (n - 1) / n,
    "sendrecv_perf": lambda n: 1.0,
}
_HALF = "     time   algbw   busbw #wrong"
HEADER = "\n".join((
    "#",
    f"#{'':62}out-of-place{'':23}in-place{'':10}",
    f"#       size         count      type   redop    root{_HALF}{_HALF}",
    f"#        (B)    (elements){'':31}(us)  (GB/s)  (GB/s){'':12}(us)  (GB/s)  (GB/s){'':7}",
    "",
))  # fmt: skip


def main():
    """Runs one test over the nodes that mpirun named, or on this node alone."""
    program, options = sys.argv[1], read_options(sys.argv[2:])
    fabric = read_fabric()
    hosts = os.environ.get("RECOVER_LAB_HOSTS", os.environ["RECOVER_LAB_NODE"]).split(",")
    ranks = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1")) * options["gpus"]
    file = open_json(options["json"])
    say(f"# Collective test starting: {program}")
    say(
        "# nThread 1 nGpus {gpus} minBytes {least} maxBytes {most} step: {step}(factor) "
        "warmup iters: {warmup} iters: {iters} agg iters: 1 validation: {check} graph: 0".format(
            **options
        )
    )
    each = ranks_of_a_group(ranks)
    devices = list_devices(fabric, hosts, ranks, options["gpus"], each)
    say("#\n# Using devices")
    for line in devices["lines"]:
        say(line)
    sys.stdout.write(HEADER)
    sys.stdout.flush()
    results = run_sizes(program, options, fabric, groups_of(hosts, ranks, each), each)
    average = sum(r["busbw"] + r["busbw_in"] for r in results) / max(1, 2 * len(results))
    say("# Out of bounds values : 0 OK")
    say(f"# Avg bus bandwidth    : {average:g} ")
    say("#\n# Collective test concluded: " + program)
    if file:
        write_json(file, program, options, devices["json"], results, average)


def open_json(path):
    """The file of ``-J``, a new one with a number where it is there; None without one."""
    if not path:
        return None
    name, count = path, 0
    while os.path.exists(name):
        name, count = f"{path}.{count}", count + 1
    try:
        file = open(name, "x")
    except OSError:
        say(f"# skipping json output; {name} not accessible")
        return None
    say(f"# Writing JSON output to {name}")
    return file


def ranks_of_a_group(ranks):
    """All ranks, or as many as ``NCCL_TESTS_SPLIT="DIV 16"`` puts into each group."""
    word, _, each = os.environ.get("NCCL_TESTS_SPLIT", "").partition(" ")
    return min(ranks, int(each)) if word == "DIV" else ranks


def groups_of(hosts, ranks, each):
    """The nodes of each group."""
    width = max(1, len(hosts) * each // ranks)
    return [hosts[at : at + width] for at in range(0, len(hosts), width)]


def say(text):
    """Prints one line at once."""
    print(text, flush=True)


def read_options(argv):
    """The options of nccl-tests that shape the output; unknown ones take one value."""
    options = {"gpus": 1, "least": "32M", "most": "32M", "step": 0, "iters": 20, "warmup": 1,
               "check": 1, "json": None}  # fmt: skip
    names = {"-g": "gpus", "-b": "least", "-e": "most", "-f": "step", "-n": "iters", "-w": "warmup",
             "-c": "check", "-J": "json", "--ngpus": "gpus", "--minbytes": "least",
             "--maxbytes": "most", "--stepfactor": "step", "--iters": "iters",
             "--warmup_iters": "warmup", "--check": "check", "--output_file": "json"}  # fmt: skip
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        value = value if equals else next(words, "")
        if name in names:
            key = names[name]
            options[key] = value if key in ("least", "most", "json") else int(value)
    options["least"], options["most"] = size_of(options["least"]), size_of(options["most"])
    options["step"] = options["step"] or 2
    return options


def size_of(text):
    """Bytes of ``8``, ``32M``, ``8G``."""
    units = {"K": 1024, "M": 1024**2, "G": 1024**3}
    unit = text[-1:].upper()
    return int(text[:-1]) * units[unit] if unit in units else int(text)


def read_fabric():
    """The scripted state of every node, kept by the lab."""
    with open(os.path.join(os.environ["RECOVER_LAB_DIR"], "fabric.json")) as file:
        return json.load(file)


def list_devices(fabric, hosts, ranks, per_process, in_group):
    """The device lines; ends the program as CUDA does when a node has too few GPUs."""
    each = max(1, ranks // len(hosts))
    lines, listed = [], []
    for rank in range(ranks):
        host, device = hosts[min(rank // each, len(hosts) - 1)], rank % each
        if device >= fabric[host]["gpus"]:
            pid = os.getpid()
            say(f"{host}: Test CUDA failure common.cu:1048 'invalid device ordinal'")
            say(f" .. {host} pid {pid}: Test failure common.cu:891")
            sys.exit(2)
        pid = 48211 + rank // per_process
        lines.append(
            f"#  Rank {rank:2d} Group {rank // in_group:2d} Pid {pid:6d} on {host:>10} "
            f"device {device:2d} "
            f"[0000:{BUS[device % 8]}:00] NVIDIA H100 80GB HBM3"
        )
        if rank % per_process:
            continue  # the file names the first GPU of each process only
        listed.append({"rank": rank, "group": rank // in_group, "pid": pid, "hostname": host,
                       "device": device, "device_hex": f"0000:{BUS[device % 8]}:00",
                       "device_info": "NVIDIA H100 80GB HBM3"})  # fmt: skip
    return {"lines": lines, "json": listed}


def run_sizes(program, options, fabric, groups, ranks):
    """One row a size, of the slowest group; a node that hangs stops the table in its middle."""
    peak = min(peak_busbw(program, fabric, hosts) for hosts in groups)
    hangs = any(program in fabric[h]["hang"] for hosts in groups for h in hosts)
    results, size = [], options["least"]
    while size <= options["most"]:
        if hangs and results:
            sys.stdout.write(f"{size:12d}  {size // 4:12d}     float     sum      -1")
            sys.stdout.flush()
            time.sleep(86400)
        results.append(row(program, size, peak, ranks, options["check"]))
        say(results[-1]["line"])
        size *= options["step"]
    return results


def peak_busbw(program, fabric, hosts):
    """What these nodes reach at a large payload, GB/s; the same nodes always reach the same."""
    noise = 1 + (draw(*sorted(hosts), program) % 2001 - 1000) / 1000 * 0.01
    if len(hosts) == 1:
        ring = asks_ring() or fabric[hosts[0]]["links"] < 18
        peak = PEAK_RING if ring else PEAK_ALONE
    else:
        peak = PEAK_PAIR if len(hosts) == 2 and not asks_ring() else PEAK_MANY
        used = [rate for h in hosts for rate in asked_rates(fabric[h]["rates"])]
        peak *= min(used) / 400 * len(used) / sum(len(fabric[h]["rates"]) for h in hosts)
        if any(b in fabric[a]["slow_peers"] or a in fabric[b]["slow_peers"]
               for a in hosts for b in hosts):  # fmt: skip
            peak *= SLOW_PATH
    peak *= min(fabric[h]["links"] for h in hosts) / 18
    if program == "alltoall_perf":
        peak *= 0.68 if len(hosts) == 1 else 0.16
    return peak * noise


def asked_rates(rates):
    """The rates of the adapters that NCCL_IB_HCA leaves: prefixes, ``=`` exact, ``^`` left out.

    Source: NCCL documentation of NCCL_IB_HCA.
    """
    asked = os.environ.get("NCCL_IB_HCA", "")
    words = [word.partition(":")[0] for word in asked.lstrip("^=").split(",") if word]
    if not words:
        return rates
    exact, left_out = "=" in asked[:2], asked.startswith("^")

    def fits(name):
        return any(name == word if exact else name.startswith(word) for word in words)

    found = [rate for i, rate in enumerate(rates) if fits(f"mlx5_{i}") is not left_out]
    if not found:
        say("NCCL WARN NET/IB : No device found.")
        sys.exit(3)
    return found


def asks_ring():
    """Whether the environment switches the in-switch reduction off."""
    algo = os.environ.get("NCCL_ALGO", "").lower()
    return os.environ.get("NCCL_NVLS_ENABLE") == "0" or "ring" in algo


def row(program, size, peak, ranks, check):
    """One line of the table: a fixed start-up time and the peak rate."""
    factor = FACTORS.get(program, lambda n: (n - 1) / n)(max(ranks, 1)) or 1.0
    start_us = 24.0 if ranks <= 8 else 38.0
    out = start_us + size * factor / (peak * 1e3)
    inside = out * 0.997
    figures = [(t, size / t / 1e3, size / t / 1e3 * factor) for t in (out, inside)]
    wrong = "0" if check else "N/A"
    redop = "none" if program in ("alltoall_perf", "all_gather_perf", "sendrecv_perf") else "sum"
    cells = "".join(f"  {micros(t):>7}  {a:6.2f}  {b:6.2f}  {wrong:>5}" for t, a, b in figures)
    line = f"{size:12d}  {size // 4:12d}  {'float':>8}  {redop:>6}  {-1:6d}{cells}"
    return {"line": line, "size": size, "redop": redop, "time": out, "time_in": inside,
            "algbw": figures[0][1], "busbw": figures[0][2],
            "algbw_in": figures[1][1], "busbw_in": figures[1][2]}  # fmt: skip


def micros(t):
    """A time as nccl-tests writes it."""
    if t >= 10000:
        return f"{t:.0f}"
    return f"{t:.1f}" if t >= 100 else f"{t:.2f}"


def draw(*words):
    """A number that depends on the words only."""
    return int.from_bytes(hashlib.sha256("/".join(words).encode()).digest()[:6], "big")


def write_json(file, program, options, devices, results, average):
    """The file of ``-J``, version 3."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    document = {
        "version": 3, "start_time": stamp, "args": [program, *sys.argv[2:]],
        "env": [f"HOME={os.environ.get('HOME', '')}"], "nccl_version": 22809,
        "config": {
            "nthreads": 1, "ngpus": options["gpus"], "minimum_bytes": options["least"],
            "maximum_bytes": options["most"], "step_factor": options["step"],
            "warmup_iters": options["warmup"], "iterations": options["iters"],
            "aggregated_iterations": 1, "validation": options["check"], "graph": 0,
            "blocking_collectives": "false", "per_iter_timing": "false",
            "parallel_init": "false", "devices": devices,
        },
        "results": [
            {"size": r["size"], "count": r["size"] // 4, "type": "float", "redop": r["redop"],
             "root": "    -1",
             "out_of_place": {"time": r["time"], "alg_bw": r["algbw"], "bus_bw": r["busbw"],
                              "nwrong": 0.0},
             "in_place": {"time": r["time_in"], "alg_bw": r["algbw_in"], "bus_bw": r["busbw_in"],
                          "nwrong": 0.0},
             "actual_iterations": options["iters"], "experiment_name": ""}
            for r in results
        ],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": average, "okay": "unchecked"},
        "errors": [""], "end_time": stamp,
    }  # fmt: skip
    with file:
        json.dump(document, file, separators=(",", ":"))


if __name__ == "__main__":
    main()
