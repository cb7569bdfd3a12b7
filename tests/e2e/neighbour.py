"""Another server on this machine, for tests of pages of other origins."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def running() -> Iterator[int]:
    """A context with the server. Returns its port. The page at `/?<address>` shows the address in a frame."""
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
        """Log nothing."""
