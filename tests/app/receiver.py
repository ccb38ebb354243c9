"""A real HTTP server on loopback that keeps what it is sent."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(ThreadingHTTPServer):
    """``taken`` holds (method, path, headers, body); ``status`` is what it answers."""

    daemon_threads = True

    def __init__(self, status=200):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken, self.status = [], status

    @property
    def place(self):
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.taken.append((self.command, self.path, dict(self.headers), body.decode()))
        self.send_response(self.server.status)
        self.end_headers()

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
