"""Stand-in for Open MPI's mpirun: finds the nodes, refuses dead ones, runs the program.

An nccl-tests program runs once and speaks for all ranks; any other program runs once a rank, here.
"""

import json
import os
import subprocess
import sys

ONE = {"--tag-output", "--timestamp-output", "--allow-run-as-root", "--oversubscribe", "-q",
       "--quiet", "--report-bindings", "-tag-output", "-allow-run-as-root", "--verbose", "-v",
       "--display-map", "--version", "-V", "--bind-to-none", "-nooversubscribe",
       "--do-not-resolve"}  # fmt: skip
TWO = {"--mca", "-mca", "--gmca", "-gmca", "--prtemca", "--pmixmca"}


def main():
    """Reads the command line, then runs."""
    options, command = read_options(sys.argv[1:])
    if options["version"]:
        print("mpirun (Open MPI) 4.1.5\n\nReport bugs to http://www.open-mpi.org/community/help/")
        return 0
    fabric = read_fabric()
    hosts = [named(fabric, h) for h in options["hosts"]] or [os.environ["RECOVER_LAB_NODE"]]
    for asked, host in zip(options["hosts"] or hosts, hosts, strict=True):
        if host is None:
            return unreachable(asked, "Could not resolve hostname: Name or service not known")
        if not fabric[host]["answers"]:
            return unreachable(asked, "connect to host port 22: Connection refused")
    slots = options["slots"] or [1] * len(hosts)
    ranks = options["np"] or (options["per_node"] or 0) * len(hosts) or sum(slots)
    if not command:
        sys.stderr.write("mpirun could not find anything to do.\n")
        return 1
    return start(command, hosts, ranks, options)


def read_options(argv):
    """Splits mpirun's own words from the program's."""
    options = {"hosts": [], "slots": [], "np": 0, "per_node": 0, "env": {}, "version": False,
               "tag": False}  # fmt: skip
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        word = argv[at]
        if word in ONE:
            options["version"] |= word in ("--version", "-V")
            options["tag"] |= word.endswith("-tag-output")
            at += 1
        elif word in TWO:
            at += 3
        else:
            take(options, word, argv[at + 1] if at + 1 < len(argv) else "")
            at += 2
    return options, argv[at:]


def take(options, word, value):
    """One option with its value."""
    if word in ("-H", "--host", "-host"):
        add_hosts(options, value.split(","))
    elif word in ("--hostfile", "-hostfile", "--machinefile", "-machinefile"):
        with open(value) as file:
            rows = [line.split("#")[0].split() for line in file]
        add_hosts(options, [":".join((r[0], *(w[6:] for w in r[1:] if w[:6] == "slots=")))
                            for r in rows if r])  # fmt: skip
    elif word in ("-np", "-n", "-c", "--np", "--n"):
        options["np"] = int(value)
    elif word in ("-N", "--npernode", "-npernode"):
        options["per_node"] = int(value)
    elif word == "--map-by" and value.startswith("ppr:"):
        options["per_node"] = int(value.split(":")[1])
    elif word == "-x":
        name, equals, text = value.partition("=")
        options["env"][name] = text if equals else os.environ.get(name, "")


def add_hosts(options, words):
    """``host:slots`` words."""
    for word in words:
        host, _, slots = word.partition(":")
        options["hosts"].append(host)
        options["slots"].append(int(slots or 1))


def read_fabric():
    """The scripted state of every node, kept by the lab."""
    with open(os.path.join(os.environ["RECOVER_LAB_DIR"], "fabric.json")) as file:
        return json.load(file)


def named(fabric, host):
    """The node of this name; None when nobody is called so."""
    return host if host in fabric else None


def unreachable(host, reason):
    """What mpirun's ssh and then mpirun itself say about a node that does not answer."""
    rule = "-" * 74
    sys.stderr.write(
        f"ssh: {host}: {reason}\n{rule}\n"
        "ORTE was unable to reliably start one or more daemons.\n"
        "This usually is caused by:\n\n"
        "* not finding the required libraries and/or binaries on\n  one or more nodes.\n\n"
        "* lack of authority to execute on one or more specified nodes.\n"
        f"{rule}\n{rule}\n"
        "ORTE does not know how to route a message to the specified daemon\n"
        "located on the indicated node:\n\n"
        f"  my node:   {os.environ['RECOVER_LAB_NODE']}\n  target node:  {host}\n\n"
        "This is usually an internal programming error that should be\n"
        f"reported to the developers.\n{rule}\n"
    )
    return 1


def start(command, hosts, ranks, options):
    """Runs the program with the variables that Open MPI sets."""
    env = {**os.environ, **options["env"], "OMPI_COMM_WORLD_SIZE": str(ranks),
           "OMPI_COMM_WORLD_RANK": "0", "RECOVER_LAB_HOSTS": ",".join(hosts)}  # fmt: skip
    if os.path.basename(command[0]).endswith("_perf"):
        command = [os.path.basename(command[0]), *command[1:]]
        if not options["tag"]:
            os.execvpe(command[0], command, env)
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as child:
            for line in child.stdout:
                sys.stdout.write(f"[1,0]<stdout>:{line}")
                sys.stdout.flush()
        return child.returncode
    rc = 0
    for rank in range(ranks):
        done = subprocess.run(command, env={**env, "OMPI_COMM_WORLD_RANK": str(rank)}, check=False)
        rc = rc or done.returncode
    return rc


sys.exit(main())
