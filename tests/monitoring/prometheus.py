"""A real Prometheus on loopback over samples that a test made, with a fixed time."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

import pytest

LIMIT_S = 120
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="prometheus is not installed",
)


class Prometheus:
    """Answers queries; ``place`` is its host and port."""

    def __init__(self, place):
        self.place = place

    def get(self, path, **query):
        url = f"http://{self.place}{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return json.loads(error.read())


def stored(folder, samples):
    """Writes samples (series with its labels, value, seconds) as blocks of a database."""
    by_name = {}
    for series, value, at in samples:
        by_name.setdefault(series.partition("{")[0], []).append(f"{series} {value:.15g} {at}\n")
    text = "".join(f"# TYPE {name} unknown\n{''.join(lines)}" for name, lines in by_name.items())
    (folder / "samples.txt").write_text(f"{text}# EOF\n")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "samples.txt",
         folder / "data"], check=True, capture_output=True,
    )  # fmt: skip


@contextmanager
def prometheus(folder, config="global: {}\n"):
    """Runs one over ``folder/data`` until the test ends."""
    (folder / "prometheus.yml").write_text(config)

    def command(place):
        return (
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={place}",
        )

    with serving(command, folder) as place:
        yield Prometheus(place)


@contextmanager
def serving(command, folder):
    """Runs a server on a free port of loopback until the test ends; yields its place.

    Between looking for a free port and taking it another test may take it: then another is tried.
    """
    process = log = None
    for _ in range(8):
        place = _free_place()
        log = folder / f"{command(place)[0]}.log"
        with log.open("w") as words:
            process = subprocess.Popen(command(place), stdout=words, stderr=words, cwd=folder)
        if _is_ready(place, process):
            break
        _end(process)
    else:
        pytest.fail(f"{log.stem} did not start: {log.read_text()[-2000:]}")
    try:
        yield place
    finally:
        _end(process)


def _free_place():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def _end(process):
    process.terminate()
    process.wait(LIMIT_S)


def _is_ready(place, process):
    ends_at = time.monotonic() + LIMIT_S
    while time.monotonic() < ends_at and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{place}/-/ready", timeout=5):
                return process.poll() is None
        except OSError:
            time.sleep(0.02)  # poll: another process starts
    return False
