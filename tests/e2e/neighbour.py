"""Another server on this machine: what pages of other origins can do, they do from here."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def running() -> Iterator[int]:
    """Its port. The page at `/?<address>` has that address in a frame; without one it is empty."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        address = self.path.partition("?")[2]
        body = f'<iframe src="{address}"></iframe>'.encode() if address else b""
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Says nothing."""
