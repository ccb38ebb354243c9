"""A ticket as the bytes of a tar.gz: the same ticket is the same bytes, each file has a digest."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recovery.errors import StoreError
from recovery.tickets.contents import Piece, Ticket
from recovery.tickets.identity import gpus_in, machine_in
from recovery.tickets.striking import Private, Striker

_GZIP = b"\x1f\x8b"
LARGEST = 256 * 1024 * 1024  # of one unpacked piece: what is beyond is cut, and said


@dataclass(slots=True)
class _Box:
    """The files so far, and what was left out."""

    files: dict[str, bytes] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)

    def put(self, path: str, content: bytes, **about: Any) -> None:
        self.files[path] = content
        digest = hashlib.sha256(content).hexdigest()
        self.rows.append({"path": path, "sha256": digest, "bytes": len(content), **about})


def packed(ticket: Ticket, get: Callable[[str], bytes], private: Private, *, version: str) -> bytes:
    """The archive. ``get`` gives the bytes of a digest; evidence that is gone is said in it."""
    striker, box = Striker(private), _Box()
    for piece in ticket.pieces:
        _take(box, piece, get, striker)
    verdicts = striker.strike_values(ticket.verdicts)
    identity = {
        "node": ticket.node,
        "machine": machine_in(box.texts),
        "gpus": gpus_in(box.texts),
        "read_by_checks": striker.strike_values(ticket.facts),
    }
    box.put("verdicts.json", _json(verdicts))
    box.put("identity.json", _json(identity))
    aside = striker.strike(ticket.aside)
    words = [
        *_head(ticket, aside),
        *_bad(verdicts),
        *_cards(identity["machine"], identity["gpus"]),
        *_foot(striker),
    ]
    box.put("README.txt", "\n".join([*words, ""]).encode())
    manifest = {
        "ticket": f"recover {version}",
        "run": ticket.run,
        "node": ticket.node,
        "files": striker.strike_values(box.rows),
        "left_out": striker.strike_values(box.left_out),
        "struck": dict(sorted(striker.counts.items())),
    }
    box.files["manifest.json"] = _json(manifest)
    return _tar(f"ticket-{ticket.node}", box.files, ticket.started_at)


def _take(box: _Box, piece: Piece, get: Callable[[str], bytes], striker: Striker) -> None:
    if piece.left_out:
        box.left_out.append({"name": piece.kept.name, "step": piece.step, "why": piece.left_out})
        return
    try:
        content, is_packed = _unpacked(get(piece.kept.digest))
    except StoreError as error:
        box.left_out.append({"name": piece.kept.name, "step": piece.step, "why": error.message})
        return
    if b"\0" in content:
        why = "neither text nor a packed text: it cannot be searched for what is private"
        box.left_out.append({"name": piece.kept.name, "step": piece.step, "why": why})
        return
    before = Counter(striker.counts)
    text = striker.strike(content.decode("utf-8", "backslashreplace"))
    box.texts.append((piece.kept.name, text))
    about = {"step": piece.step, "name": piece.kept.name, "of_sha256": piece.kept.digest}
    if striker.counts - before:
        about["struck"] = str(sum((striker.counts - before).values()))
    packed_again = gzip.compress(text.encode(), mtime=0) if is_packed else text.encode()
    box.put(f"{piece.path}{'.log.gz' if is_packed else '.txt'}", packed_again, **about)


def _unpacked(content: bytes) -> tuple[bytes, bool]:
    """The text inside, as far as it can be read, and whether it was packed."""
    if not content.startswith(_GZIP):
        return content, False
    text, reader = b"", zlib.decompressobj(wbits=31)
    try:
        text = reader.decompress(content, LARGEST)
    except zlib.error as error:
        return f"[cannot be unpacked: {error}]\n".encode(), True
    cut = b"" if reader.eof else b"\n[the packed file ends here, or is too large]\n"
    return text + cut, True


def _json(values: Any) -> bytes:
    return (json.dumps(values, indent=1, ensure_ascii=False, default=str) + "\n").encode()


def _head(ticket: Ticket, aside: str) -> list[str]:
    lines = [f"Node {ticket.node}, run {ticket.run} ({ticket.runbook})", ""]
    return [*lines, f"set aside by {aside}", ""] if aside else lines


def _bad(verdicts: list[Mapping[str, Any]]) -> list[str]:
    """All findings above pass, worst first."""
    rank = ("fail", "unknown", "warn")
    rows = [(f["level"], v["step"], f["finding"]) for v in verdicts for f in v["findings"]]
    bad = sorted((r for r in rows if r[0] in rank), key=lambda r: rank.index(r[0]))
    lines = [f"{level.upper():7} {step}: {finding}" for level, step, finding in bad]
    return lines or ["nothing above pass"]


def _cards(machine: dict[str, str], gpus: list[dict[str, str]]) -> list[str]:
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    lines = ["", f"Machine: {told or 'nobody told; freeze bmc as root keeps it'}"]
    for gpu in gpus:
        parts = ", ".join(f"{name} {value}" for name, value in gpu.items() if name != "pci")
        lines.append(f"GPU {gpu['pci']}: {parts}")
    return lines


def _foot(striker: Striker) -> list[str]:
    counted = ", ".join(f"{n} {kind}" for kind, n in sorted(striker.counts.items()) if n)
    return [
        "",
        "verdicts.json   all findings",
        "identity.json   serials and firmware",
        "evidence/       what the node printed, by step",
        "manifest.json   digests, and what was left out",
        "",
        f"Struck out: {counted or 'nothing'}. One word stands for one name: user-1, host-2.",
    ]


def _tar(top: str, files: Mapping[str, bytes], at: float) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path in sorted(files):
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.size, entry.mtime, entry.mode = len(files[path]), int(at), 0o644
            archive.addfile(entry, io.BytesIO(files[path]))
    return gzip.compress(raw.getvalue(), mtime=0)
