"""`recover serve` as a process over a state folder, and how to ask it."""

import base64
import http.client
import os
import signal
import subprocess
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass

from tests.lab_runs import LIMIT_S, RECOVER


@dataclass
class Answer:
    status: int
    headers: dict
    text: str


@dataclass
class Served:
    """One server; ``place`` is its host and port."""

    url: str
    process: subprocess.Popen

    @property
    def place(self):
        return urllib.parse.urlsplit(self.url).netloc

    def ask(self, path, method="GET", **headers):
        """Asks for exactly this path: nothing in it is made simpler."""
        line = http.client.HTTPConnection(self.place, timeout=LIMIT_S)
        try:
            line.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                line.putheader(name.replace("_", "-"), value)
            line.endheaders()
            answer = line.getresponse()
            text = answer.read().decode("utf-8", "replace")
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)
        finally:
            line.close()

    def following(self, run):
        """An open stream of a run's progress: the connection and its answer."""
        line = http.client.HTTPConnection(self.place, timeout=LIMIT_S)
        line.request("GET", f"/runs/{run}/events")
        return line, line.getresponse()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out + err


def basic(token, name="anybody"):
    return "Basic " + base64.b64encode(f"{name}:{token}".encode()).decode()


@contextmanager
def served(state, *options, **environment):
    """A server on a free port of loopback."""
    process = subprocess.Popen(
        [RECOVER, "serve", "--port", "0", "--state", str(state), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        said = process.stdout.readline()
        assert said, process.communicate(timeout=LIMIT_S)
        yield Served(said.split()[0], process)
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=LIMIT_S)
