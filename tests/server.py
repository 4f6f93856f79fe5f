"""A small HTTP server with the faults of real ones. It records its requests."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """The content of a path. Each answer takes the next of `bodies`; the last one is repeated."""

    bodies: list[bytes]
    status: int = 200
    ranges: bool = True  # False: a request for the rest gets 200 and the whole file
    shift: int = 0  # offset of the part that is sent from the part requested
    length: bool = True  # send Content-Length
    cut: list[int] = field(default_factory=list)  # bytes before the connection is closed, one number per answer
    stall: int | None = None  # bytes before the answer stalls
    gate: threading.Event | None = None  # send the first kilobyte, then wait for this event
    content_type: str = "application/octet-stream"
    location: str | None = None


class Server:
    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str | None]] = []  # path, Range
        self.released = threading.Event()  # ends stalled answers
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def serve(self, path: str, *bodies: bytes, **faults) -> str:
        """Serve a page at a path; returns its address."""
        self.pages[f"/{path}"] = Page(list(bodies) or [b""], **faults)
        return self.url(path)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/{path}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        page = self.pages.get(request.path)
        if page is None:
            return request.send_error(404)
        if page.location is not None:
            request.send_response(302)
            request.send_header("Location", page.location)
            return request.end_headers()
        if page.status != 200:
            return request.send_error(page.status)
        body = page.bodies.pop(0) if len(page.bodies) > 1 else page.bodies[0]
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and page.ranges else 0
        if start >= len(body) > 0:
            return request.send_error(416)
        start = max(0, start + page.shift) if start else 0
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        rest = body[start:]
        if page.length:
            request.send_header("Content-Length", str(len(rest)))
        request.send_header("Content-Type", page.content_type)
        request.end_headers()
        self._send(request, page, rest)

    def _send(self, request: BaseHTTPRequestHandler, page: Page, rest: bytes) -> None:
        rest = rest[: page.cut.pop(0)] if page.cut else rest
        until = len(rest) if page.stall is None else page.stall
        try:
            for at in range(0, until, 1024):
                request.wfile.write(rest[at : min(at + 1024, until)])
                if page.gate:
                    page.gate.wait(60)
            if page.stall is not None:
                self.released.wait(60)
        except OSError:
            pass  # the client left

    @contextmanager
    def running(self) -> Iterator[Server]:
        self._thread.start()
        try:
            yield self
        finally:
            self.released.set()
            self._http.shutdown()
            self._http.server_close()


def wait_until(condition, seconds: float = 30.0) -> None:
    """Wait until a condition holds; fail after a long time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("what was waited for never came")
        time.sleep(0.01)
