"""A small stand-in for a Kubernetes API server: nodes, jobs of three kinds, their pods.

Real kubectl reads and changes it. Jobs bind their pods at once, one a node, where the affinity
allows it and the node is open and ready; a pod of a dead node ends only by force, as in life.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from recovery.launchers.kubernetes.manifest import HOSTNAME, KINDS, Manifest


@dataclass
class Cluster:
    """What the API server knows."""

    nodes: dict[str, dict] = field(default_factory=dict)
    jobs: dict[str, dict] = field(default_factory=dict)
    pods: dict[str, dict] = field(default_factory=dict)
    posted: list[str] = field(default_factory=list)
    url: str = ""

    def add(self, name: str) -> None:
        """A node that is ready; its hostname label is not its name."""
        metadata = {"name": name, "labels": {HOSTNAME: f"host-{name}"}}
        ready = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]
        self.nodes[name] = {
            "kind": "Node", "apiVersion": "v1", "metadata": metadata, "spec": {},
            "status": {"conditions": ready},
        }  # fmt: skip

    def power_off(self, name: str) -> None:
        """The kubelet of a node is silent from now on."""
        self.nodes[name]["status"]["conditions"][1]["status"] = "Unknown"

    def ready(self, name: str) -> bool:
        """Claims that the kubelet answers."""
        return self.nodes[name]["status"]["conditions"][1]["status"] == "True"

    def start(self, job: dict) -> None:
        """Makes the job's pods."""
        manifest, free = Manifest(job), self._free(job)
        for number in range(manifest.pods):
            node = free.pop(0) if free else ""
            name = f"{manifest.name}-{number}-{len(self.posted)}"
            status: dict[str, Any] = {"phase": "Running" if node else "Pending"}
            if not node:
                status["conditions"] = [
                    {"type": "PodScheduled", "status": "False", "message": "0/3 nodes: no room"}
                ]
            labels = {manifest.kind.label: manifest.name}
            self.pods[name] = {
                "kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "labels": labels},
                "spec": {"nodeName": node}, "status": status,
            }  # fmt: skip

    def _free(self, job: dict) -> list[str]:
        text = json.dumps(job)
        taken = {pod["spec"]["nodeName"] for pod in self.pods.values()}
        return [
            name
            for name, node in self.nodes.items()
            if self.ready(name)
            and not node["spec"].get("unschedulable")
            and name not in taken
            and (HOSTNAME not in text or f'"host-{name}"' in text)
        ]

    def end(self, name: str) -> None:
        """Deletes a job; its pods on live nodes end, the others wait for a kubelet."""
        self.jobs.pop(name)
        for pod_name, pod in list(self.pods.items()):
            node = pod["spec"]["nodeName"]
            if name not in pod["metadata"]["labels"].values():
                continue
            if not node or self.ready(node):
                self.pods.pop(pod_name)
            else:
                pod["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"


def _kinds(group: str) -> list[dict]:
    verbs = ["get", "list", "create", "delete", "patch"]
    core = [("nodes", "Node", False), ("pods", "Pod", True)]
    theirs = [(k.plural, k.name, True) for k in KINDS.values() if k.api == group]
    return [
        {"name": p, "singularName": k.lower(), "namespaced": n, "kind": k, "verbs": verbs}
        for p, k, n in (core if group == "v1" else theirs)
    ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *words: object) -> None:
        """Says nothing."""

    def _answer(self) -> None:
        status, found = self._find(json.loads(self._body() or b"{}"))
        text = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815 - the names http.server calls

    def _body(self) -> bytes:
        """The request's body; kubectl sends it in chunks where it streams it."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _find(self, body: dict) -> tuple[int, dict]:
        url = urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        if len(parts) <= (2 if parts[0] == "api" else 3):
            return 200, _discovery(parts)
        rest = parts[2 if parts[0] == "api" else 3 :]
        rest = rest[2:] if rest[0] == "namespaces" else rest
        return self._objects(rest, parse_qs(url.query), body)

    def _objects(self, rest: list[str], query: dict, body: dict) -> tuple[int, dict]:
        cluster = self.server.cluster
        stores = {"nodes": cluster.nodes, "pods": cluster.pods}
        store = stores.get(rest[0], cluster.jobs)
        if self.command == "POST":
            name = body["metadata"]["name"]
            if name in store:
                return _refused(409, "AlreadyExists", f'"{name}" already exists')
            cluster.posted.append(self.path)
            store[name] = body
            cluster.start(body)
            return 201, body
        if len(rest) == 1:
            wanted = query.get("labelSelector", [""])[0].partition("=")[::2]
            items = [o for o in store.values() if not wanted[0] or _bears(o, *wanted)]
            return 200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}
        if rest[1] not in store:
            return _refused(404, "NotFound", f'{rest[0]} "{rest[1]}" not found')
        found = store[rest[1]]
        if self.command == "DELETE":
            _ = cluster.end(rest[1]) if store is cluster.jobs else store.pop(rest[1])
        return 200, found


def _bears(item: dict, label: str, value: str) -> bool:
    return item["metadata"].get("labels", {}).get(label) == value


def _refused(code: int, reason: str, message: str) -> tuple[int, dict]:
    words = {"status": "Failure", "reason": reason, "message": message, "code": code}
    return code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, **words}


def _discovery(parts: list[str]) -> dict:
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    if parts == ["apis"]:
        groups = []
        for kind in KINDS.values():
            group, version = kind.api.split("/")
            both = {"groupVersion": kind.api, "version": version}
            groups.append({"name": group, "versions": [both], "preferredVersion": both})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if parts[0] == "version":
        return {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}
    group = "/".join(parts[1:])
    return {"kind": "APIResourceList", "groupVersion": group, "resources": _kinds(group)}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    cluster: Cluster


@contextlib.contextmanager
def api_server(*names: str) -> Iterator[Cluster]:
    """A cluster of these nodes, with its address in ``url``."""
    cluster = Cluster()
    for name in names:
        cluster.add(name)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.cluster = cluster
    cluster.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
