"""The running lab: every node's listener, power switch and faults, in one process."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import paramiko

from recovery.lab import processes, rendering, server
from recovery.lab.errors import LabError
from recovery.lab.keys import key_at, known_host
from recovery.lab.layout import BASE_PORT, Layout, plain_python
from recovery.lab.state import Happening, NodeState, from_json
from recovery.registry import did_you_mean

_FIRST_UPTIME_S = 6 * 86400 + 4 * 3600
_REBOOT_S = 0.5
_NODES_PER_LEAF = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """What the lab is asked to be."""

    n_nodes: int = 8
    port: int = BASE_PORT  # 0: any free ports
    python: str = ""  # the nodes' python3; empty: the one without our packages
    isolate: bool = False


@dataclass(slots=True)
class _Live:
    """The parts of a node that exist only while the process runs."""

    state: NodeState
    host_key: paramiko.PKey
    listener: socket.socket | None = None
    links: list[socket.socket] = field(default_factory=list)
    transports: list[paramiko.Transport] = field(default_factory=list)


class Farm:
    """All nodes. Its methods may be called from any thread; one lock serialises the changes."""

    def __init__(self, layout: Layout, plan: Plan, now: Callable[[], float] = time.time) -> None:
        self._layout, self._plan, self._now = layout, plan, now
        self._lock = threading.RLock()
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._stopped = False
        self._pending: list[Callable[[], None]] = []
        self._key = key_at(layout.key)
        self._nodes: dict[str, _Live] = {}
        self._install_tools()
        for index in range(plan.n_nodes):
            self._make_node(index)
        self._write_known_hosts()
        rendering.write_fabric(layout, self.states())

    # -- what others ask -----------------------------------------------------------------

    def states(self) -> tuple[NodeState, ...]:
        """All nodes as they are now, in order."""
        return tuple(live.state for live in self._nodes.values())

    def resolve(self, names: Iterable[str]) -> tuple[str, ...]:
        """The named nodes; all of them when no name is given.

        Raises:
            LabError: a name that no node bears.
        """
        wanted = tuple(names) or tuple(self._nodes)
        for name in wanted:
            if name not in self._nodes:
                hint = did_you_mean(name, tuple(self._nodes))
                raise LabError(f"no node {name!r} in the lab{hint}", remedy="recover lab status")
        return wanted

    def power_off(self, names: Iterable[str]) -> int:
        """Takes the power of these nodes at once; returns how many processes ended."""
        wanted = self.resolve(names)
        with self._lock:
            for name in wanted:
                self._unplug(self._nodes[name])
            ended = processes.kill(self._layout.root, frozenset(wanted))
            at = self._now()
            for name in wanted:
                state = self._nodes[name].state
                if state.power:
                    lost = (*state.happenings, Happening(at, "ac-lost"))
                    self._change(name, power=False, happenings=lost)
            rendering.write_fabric(self._layout, self.states())
        return ended

    def power_on(self, names: Iterable[str]) -> tuple[str, ...]:
        """Gives power back; nodes that never come back stay off. Returns those that answer."""
        back = []
        with self._lock:
            for name in self.resolve(names):
                state = self._nodes[name].state
                if state.power or self._switched(state, "never-back"):
                    continue
                self._boot(name, Happening(self._now(), "ac-back"))
                back.append(name)
            rendering.write_fabric(self._layout, self.states())
        return tuple(back)

    def reboot(self, name: str) -> None:
        """Restarts one node, as its operating system or its BMC would."""
        self.resolve([name])
        with self._lock:
            self._change(name, power=False)
            self._unplug(self._nodes[name])
            processes.kill(self._layout.root, frozenset([name]))
            rendering.write_fabric(self._layout, self.states())
        if not self._switched(self._nodes[name].state, "never-back"):
            timer = threading.Timer(_REBOOT_S, self._boot_again, [name])
            timer.daemon = True
            timer.start()

    def break_node(self, fault: str, name: str, value: str | None) -> str:
        """Breaks something on a node; returns the value that the fault took.

        Raises:
            LabError: no such fault or node, or a value that the fault cannot take.
        """
        known = rendering.shelf()
        if fault not in known:
            hint = did_you_mean(fault, tuple(known))
            raise LabError(f"no fault {fault!r}{hint}", remedy=f"one of: {', '.join(known)}")
        self.resolve([name])
        taken = known[fault].default if value is None else value
        with self._lock:
            self._strike(fault, name, taken)
        return taken

    def mend(self, name: str) -> tuple[str, ...]:
        """Takes all faults of a node away; what they did to its disk stays. Returns their names."""
        self.resolve([name])
        with self._lock:
            live = self._nodes[name]
            gone = tuple(live.state.faults)
            self._change(name, faults={})
            live.host_key = key_at(self._layout.node(name) / "etc" / "host_key")
            rendering.write_fabric(self._layout, self.states())
        return gone

    def reset_gpus(self, name: str) -> None:
        """Ends the faults that a reset of the GPUs ends."""
        self.resolve([name])
        with self._lock:
            known, had = rendering.shelf(), self._nodes[name].state.faults
            self._change(name, faults={f: v for f, v in had.items() if not known[f].until_reset})

    def environment(self, name: str) -> dict[str, str]:
        """What every command of this node finds in its environment."""
        layout, node = self._layout, self._layout.node(name)
        system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        values = {
            "PATH": f"{node / 'bin'}:{layout.tools}:{system}",
            "HOME": str(layout.home(name)),
            "USER": "root",
            "LOGNAME": "root",
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "HOSTNAME": name,
            "RECOVER_LAB_DIR": str(layout.root),
            "RECOVER_LAB_NODE": name,
            "RECOVER_LAB_TOOLS": str(layout.tools),
            "RECOVER_LAB_JOBS": str(Path(__file__).parent / "jobs"),
            "RECOVER_LAB_PYTHON": plain_python(),
            "RECOVER_LAB_CONTROL": str(layout.control),
        }
        if self._plan.isolate:
            values["RECOVER_LAB_ISOLATE"] = str(layout.tools / "_isolate")
        return values

    def watch(self, listener: socket.socket, accept: Callable[[socket.socket], None]) -> None:
        """Accepts on one more listener (the control socket) in the same loop."""
        self._selector.register(listener, selectors.EVENT_READ, accept)

    def stop(self) -> None:
        """Has `serve` return."""
        self._stopped = True
        self._waker.send(b".")

    def serve(self) -> None:
        """Accepts connections until told to stop, then takes all power."""
        while not self._stopped:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._wake.recv(4096)
                    self._carry_out_pending()
                    continue
                with contextlib.suppress(OSError):
                    key.data(key.fileobj.accept()[0])  # type: ignore[union-attr] # a socket
        for live in self._nodes.values():
            self._unplug(live)
        processes.kill(self._layout.root, frozenset(self._nodes))

    # -- how nodes change ----------------------------------------------------------------

    def _strike(self, fault: str, name: str, value: str) -> None:
        state = self._nodes[name].state
        known = rendering.shelf()[fault]
        try:
            changed = replace(
                state,
                faults={**state.faults, fault: value},
                happenings=(*state.happenings, Happening(self._now(), fault)),
            )
            rendering.machine_of(changed)
            known.words(rendering.machine_of(state), value)
            known.tools(value)
        except (ValueError, IndexError) as error:
            raise LabError(
                f"fault {fault!r} cannot take {value!r}: {error}",
                remedy=f"give --value as {known.value_help or 'nothing'}",
            ) from error
        known.damage(self._layout.home(name))
        self._change(name, faults=changed.faults, happenings=changed.happenings)
        if "other-hostkey" in known.switches:
            path = self._layout.node(name) / "etc" / f"host_key_{len(changed.happenings)}"
            self._nodes[name].host_key = key_at(path)
        rendering.write_fabric(self._layout, self.states())

    def _make_node(self, index: int) -> None:
        width = max(2, len(str(self._plan.n_nodes)))
        name = f"node{index + 1:0{width}d}"
        folder = self._layout.node(name)
        for part in ("home/ckpt", "home/log", "home/data", "etc/gpu", "bin", "root", "tmp"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        kept = self._layout.state(name)
        state = from_json(kept.read_text()) if kept.exists() else self._first_state(name, index)
        listener = self._listen(state.port) if state.power else None
        if listener is not None:
            state = replace(state, port=listener.getsockname()[1])
        live = _Live(state, key_at(folder / "etc" / "host_key"))
        self._nodes[name] = live
        rendering.write_node(self._layout, state)
        self._write_syslog(state)
        if listener is not None:
            self._open(name, listener)

    def _first_state(self, name: str, index: int) -> NodeState:
        booted = self._now() - _FIRST_UPTIME_S
        return NodeState(
            name=name,
            index=index,
            leaf=f"leaf{index // _NODES_PER_LEAF + 1}",
            port=self._plan.port and self._plan.port + index,
            boot_id=str(uuid.uuid4()),
            booted_at=booted,
            happenings=(Happening(booted, "boot"),),
        )

    def _boot(self, name: str, *before: Happening) -> None:
        at = self._now()
        state = self._nodes[name].state
        listener = self._listen(state.port)
        for mark in (self._layout.node(name) / "etc" / "gpu").iterdir():
            mark.unlink()  # no process of an earlier boot holds a GPU
        self._change(
            name,
            power=True,
            boot_id=str(uuid.uuid4()),
            booted_at=at,
            happenings=(*state.happenings, *before, Happening(at, "boot")),
        )
        self._open(name, listener)

    def _boot_again(self, name: str) -> None:
        with self._lock:
            self._boot(name)
            rendering.write_fabric(self._layout, self.states())

    def _change(self, name: str, **changes: object) -> None:
        live = self._nodes[name]
        live.state = replace(live.state, **changes)  # type: ignore[arg-type] # names of its fields
        rendering.write_node(self._layout, live.state)
        if "happenings" in changes:
            self._write_syslog(live.state)

    def _write_syslog(self, state: NodeState) -> None:
        screens = self._layout.node(state.name) / "etc" / "screens"
        log = self._layout.home(state.name) / "log"
        for name in ("syslog", "kern.log"):
            shutil.copyfile(screens / "syslog", log / name)

    @staticmethod
    def _switched(state: NodeState, switch: str) -> bool:
        return any(switch in rendering.shelf()[f].switches for f in state.faults)

    # -- listeners and connections -------------------------------------------------------

    def _listen(self, port: int) -> socket.socket:
        try:
            return socket.create_server(("127.0.0.1", port), backlog=128)
        except OSError as error:
            raise LabError(
                f"port {port} of 127.0.0.1 is taken: {error.strerror}",
                remedy="recover lab down, or choose other ports: --port 0",
            ) from error

    def _open(self, name: str, listener: socket.socket) -> None:
        self._nodes[name].listener = listener

        def accept(link: socket.socket) -> None:
            self._welcome(name, link)

        self._soon(lambda: self.watch(listener, accept))

    def _welcome(self, name: str, link: socket.socket) -> None:
        with self._lock:
            live = self._nodes[name]
            live.links = [known for known in live.links if known.fileno() >= 0]
            live.links.append(link)
            if self._switched(live.state, "silent"):
                return
            door = server.Door(
                self._key,
                self.environment(name),
                self._layout.home(name),
                refuse=self._switched(live.state, "refuse-login"),
            )
            live.transports = [t for t in live.transports if t.is_active()]
            live.transports.append(server.serve(link, live.host_key, door))

    def _unplug(self, live: _Live) -> None:
        listener, live.listener = live.listener, None
        if listener is not None:
            gone = threading.Event()

            def close() -> None:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(listener)
                listener.close()
                gone.set()

            self._soon(close)
        for link in live.links:
            server.drop(link)
        live.links, live.transports = [], []

    def _soon(self, change: Callable[[], None]) -> None:
        """Has the accept loop do it, for a selector must not change under its owner."""
        self._pending.append(change)
        self._waker.send(b".")

    def _carry_out_pending(self) -> None:
        while self._pending:
            self._pending.pop(0)()

    # -- files ---------------------------------------------------------------------------

    def _install_tools(self) -> None:
        """Copies the tools, so that their paths are short and their modes right."""
        source = Path(__file__).parent / "tools"
        shutil.rmtree(self._layout.tools, ignore_errors=True)
        shutil.copytree(source, self._layout.tools, ignore=shutil.ignore_patterns("__*"))
        for tool in self._layout.tools.iterdir():
            tool.chmod(0o755)
        python = self._layout.tools / "python3"
        if self._plan.python:
            python.write_text(f'#!/bin/sh\nexec "{self._plan.python}" "$@"\n')
            python.chmod(0o755)
        else:
            python.symlink_to(plain_python())

    def _write_known_hosts(self) -> None:
        lines: Mapping[str, str] = {
            name: known_host(live.state.port, key_at(self._layout.node(name) / "etc" / "host_key"))
            for name, live in self._nodes.items()
        }
        self._layout.known_hosts.write_text("".join(lines.values()))
        os.chmod(self._layout.known_hosts, 0o600)  # noqa: PTH101 - one call, no Path needed
