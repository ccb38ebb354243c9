"""The background process of the lab: ``python -m recovery.lab``; started by `recover lab up`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from recovery.errors import RecoveryError
from recovery.lab.control import Control
from recovery.lab.farm import Farm, Plan
from recovery.lab.inventory import write_inventory
from recovery.lab.layout import Layout


def main() -> int:
    """Starts the nodes, tells the starter that they answer, serves until told to stop."""
    options = _options()
    if os.fork():  # the starter waits for this first process only; the lab is nobody's child
        return 0
    layout = Layout(Path(options.dir))
    try:
        plan = Plan(options.nodes, options.port, options.python, options.isolate)
        farm = Farm(layout, plan)
        control = Control(farm, layout)
        listener = control.listen()
        farm.watch(listener, control.accept)
        write_inventory(layout, farm.states())
    except RecoveryError as error:
        _tell(options.ready, f"{error.message}\n{error.remedy}\n")
        return error.exit_code
    layout.pid_file.write_text(f"{os.getpid()}\n")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: farm.stop())
    _tell(options.ready, "ready\n")
    farm.serve()
    layout.control.unlink(missing_ok=True)
    layout.pid_file.unlink(missing_ok=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--python", default="")
    parser.add_argument("--isolate", action="store_true")
    parser.add_argument("--ready", type=int, required=True, help="descriptor to tell the starter")
    return parser.parse_args()


def _tell(descriptor: int, text: str) -> None:
    os.write(descriptor, text.encode())
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
