"""A run's metrics outside its folder: the textfile collector's folder, a push gateway."""

from __future__ import annotations

import base64
import http.client
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TEXTFILE, PUSHGATEWAY = "metrics_textfile", "metrics_pushgateway"
REPORT = "prometheus"
LIMIT_S = 10.0


def is_wanted(variables: Mapping[str, object]) -> bool:
    """Claims that the inventory says where a run's metrics go."""
    return bool(variables.get(TEXTFILE) or variables.get(PUSHGATEWAY))


def publish(
    variables: Mapping[str, object],
    text: str,
    cluster: str,
    runbook: str,
    *,
    limit_s: float = LIMIT_S,
) -> Iterator[str]:
    """Writes the metrics where the inventory says; yields a line for each place that failed."""
    path, url = variables.get(TEXTFILE), variables.get(PUSHGATEWAY)
    if path:
        yield from _written(textfile(str(path), cluster, runbook), text)
    if url:
        yield from _pushed(_Group(str(url), cluster, runbook), text, limit_s)


def textfile(named: str, cluster: str, runbook: str) -> Path:
    """The file: as named, or in a folder one for each cluster and runbook."""
    path = Path(named).expanduser()
    if path.suffix == ".prom":
        return path
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in f"{cluster}_{runbook}")
    return path / f"recover_{safe}.prom"


def _written(path: Path, text: str) -> Iterator[str]:
    """Written beside and renamed: the collector never sees half a file."""
    try:
        handle, part = tempfile.mkstemp(prefix=".recover-", dir=path.parent)
    except OSError as error:
        yield f"metrics not written: {path.parent}: {error.strerror}"
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(part).chmod(0o644)  # the collector is another user
        Path(part).replace(path)
    except OSError as error:
        Path(part).unlink(missing_ok=True)
        yield f"metrics not written: {path}: {error.strerror}"


@dataclass(frozen=True, slots=True)
class _Group:
    """One group of a push gateway."""

    url: str
    cluster: str
    runbook: str

    @property
    def parts(self) -> urllib.parse.SplitResult:
        """Its address in parts."""
        return urllib.parse.urlsplit(self.url)

    @property
    def host(self) -> str:
        """Host and port, without a login."""
        return self.parts.netloc.rpartition("@")[2]

    @property
    def target(self) -> str:
        """Where its metrics are put."""
        quoted = (urllib.parse.quote(one, safe="") for one in (self.cluster, self.runbook))
        place = "/metrics/job/recover/cluster/{}/runbook/{}".format(*quoted)
        path = self.parts.path.rstrip("/") + place
        return urllib.parse.urlunsplit((self.parts.scheme, self.host, path, "", ""))


def _pushed(group: _Group, text: str, limit_s: float) -> Iterator[str]:
    """PUT replaces what the group had: nodes that are gone do not stay for ever."""
    try:
        parts, target = group.parts, group.target
    except ValueError as error:
        yield f"metrics not pushed: {PUSHGATEWAY} is no address: {error}"
        return
    if parts.scheme not in ("http", "https"):
        yield f"metrics not pushed: {PUSHGATEWAY} must be an http or https address"
        return
    headers = {"Content-Type": "text/plain; version=0.0.4", **_login(parts)}
    request = urllib.request.Request(  # noqa: S310 - http or https, checked above
        target, data=text.encode(), method="PUT", headers=headers
    )
    try:
        with urllib.request.urlopen(request, timeout=limit_s):  # noqa: S310 - as above
            return
    except http.client.HTTPException as error:  # what answers there does not speak HTTP
        yield f"metrics not pushed to {group.host}: no HTTP: {type(error).__name__}"
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        yield f"metrics not pushed to {group.host}: {str(reason)[:160]}"


def _login(parts: urllib.parse.SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    names = (urllib.parse.unquote(one or "") for one in (parts.username, parts.password))
    token = base64.b64encode(":".join(names).encode()).decode()
    return {"Authorization": f"Basic {token}"}
