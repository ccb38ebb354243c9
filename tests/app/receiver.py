"""A real HTTP server on loopback that keeps what it is sent."""

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(ThreadingHTTPServer):
    """``taken`` holds (method, path, headers, body); ``status`` is what it answers.

    ``shown`` is what a GET is answered with.
    """

    daemon_threads = True

    def __init__(self, status=200):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken, self.status, self.shown = [], status, ""

    @property
    def place(self):
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.taken.append((self.command, self.path, dict(self.headers), body.decode()))
        self.send_response(self.server.status)
        self.end_headers()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self.server.shown.encode())

    do_PUT = do_POST  # noqa: N815 - the name that http.server looks for

    def log_message(self, *words):
        pass


@contextmanager
def receiving(status=200):
    """A receiver for the length of a test."""
    server = Receiver(status)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def strange(answer):
    """A server that takes whatever comes: it sends ``answer`` and hangs up, or (None) says nothing.

    Yields its host and port, and the list of what it was sent.
    """
    taken, over = [], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)

        def work():
            held = []
            while not over.is_set():
                try:
                    line, _ = listener.accept()
                except TimeoutError:
                    continue
                line.settimeout(30)
                taken.append(line.recv(65536))
                if answer is None:
                    held.append(line)
                    continue
                line.sendall(answer)
                line.close()
            for line in held:
                line.close()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", taken
        finally:
            over.set()
            thread.join()


STRANGE = {
    "garbage": b"\x00\xff\x16\x03 not HTTP\n\n",
    "nothing at all": b"",
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
    "an endless head": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000,
    "too many heads": b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 500 + b"\r\n",
    "a status of its own": b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
}
