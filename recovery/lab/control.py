"""The lab's control socket: one JSON line in, one JSON line out."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from recovery.errors import RecoveryError
from recovery.lab import processes, scenarios
from recovery.lab.errors import LabError
from recovery.lab.farm import Farm
from recovery.lab.layout import Layout

_LIMIT = 1 << 20


class Control:
    """Answers requests for one farm."""

    def __init__(self, farm: Farm, layout: Layout) -> None:
        self._farm, self._layout = farm, layout
        self._ends = threading.Event()
        self._verbs: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
            "status": lambda _: self._status(),
            "break": lambda r: self._farm.break_node(r["fault"], r["nodes"][0], r.get("value")),
            "mend": lambda r: self._farm.mend(r["nodes"][0]),
            "power-loss": lambda r: self._farm.power_off(r["nodes"]),
            "power-on": lambda r: self._farm.power_on(r["nodes"]),
            "reboot": lambda r: self._farm.reboot(r["nodes"][0]),
            "gpu-reset": lambda r: self._farm.reset_gpus(r["nodes"][0]),
            "scenario": lambda r: scenarios.play(r["name"], self._farm, self._layout),
            "down": lambda _: self._ends.set(),
        }

    def listen(self) -> socket.socket:
        """The socket, ready; only the same user can reach it."""
        path = self._layout.control
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(16)
        return listener

    def accept(self, link: socket.socket) -> None:
        """Answers one request in a thread of its own."""
        threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link: socket.socket) -> None:
        with link, contextlib.suppress(OSError):
            link.settimeout(120)
            with link.makefile("rb") as lines:
                request = lines.readline(_LIMIT)
            link.sendall(json.dumps(self._reply(request)).encode() + b"\n")
        if self._ends.is_set():  # only now: the answer must not be lost with the process
            self._farm.stop()

    def _reply(self, line: bytes) -> dict[str, object]:
        try:
            request = json.loads(line)
            verb = self._verbs.get(request.get("verb", ""))
            if verb is None:
                raise LabError("the lab does not know this request", remedy="recover lab --help")
            return {"answer": verb(request)}
        except RecoveryError as error:
            return {"error": error.message, "remedy": error.remedy}
        except (ValueError, KeyError, IndexError, OSError) as error:
            return {
                "error": f"{type(error).__name__}: {error}",
                "remedy": f"see {self._layout.log}",
            }

    def _status(self) -> dict[str, object]:
        living: dict[str, list[str]] = {}
        for process in processes.of_lab(self._layout.root):
            living.setdefault(process.node, []).append(f"{process.pid} {process.command}")
        return {
            "inventory": str(self._layout.inventory),
            "nodes": [
                {
                    "name": s.name,
                    "port": s.port,
                    "leaf": s.leaf,
                    "power": s.power,
                    "faults": dict(s.faults),
                    "processes": living.get(s.name, []),
                }
                for s in self._farm.states()
            ],
        }
