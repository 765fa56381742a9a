"""A client of the server under test, and a proxy before it that loses, cuts and replaces answers."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple
from unittest import mock
from urllib.parse import urlsplit

from airlock_sandbox import Airlock, _deadline

URL = os.environ["AIRLOCK_TEST_URL"]
DEVELOPER = os.environ["AIRLOCK_TEST_DEVELOPER_KEY"]
ADMIN = os.environ["AIRLOCK_TEST_ADMIN_KEY"]


def connect(url: str = URL, **options: Any) -> Airlock:
    return Airlock(url, options.pop("api_key", DEVELOPER), **{"timeout_s": 60, **options})


@contextmanager
def later(seconds: float) -> Iterator[None]:
    """The clock of deadlines jumps; connections wait in real time."""
    clock = mock.Mock(wraps=time)
    clock.monotonic = lambda: time.monotonic() + seconds
    with mock.patch.object(_deadline, "time", clock):
        yield


class Asked(NamedTuple):
    method: str
    path: str
    headers: Dict[str, str]
    body: bytes


class Fate(NamedTuple):
    """An answer. `cut_after`: bytes of the real body that pass. `lose`: the request arrives, and no answer does."""

    status: int = 0
    body: bytes = b""
    content_type: str = "application/json"
    headers: Tuple[Tuple[str, str], ...] = ()
    cut_after: Optional[int] = None
    lose: bool = False


def refusal(code: str, status: int = 503, **headers: str) -> Fate:
    error = {"error": {"code": code, "message": "told", "hint": ""}}
    return Fate(status, json.dumps(error).encode(), headers=tuple(headers.items()))


def frames(*events: Any) -> Fate:
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Fate(200, text.encode(), "text/event-stream")


def is_stream(asked: Asked) -> bool:
    return "text/event-stream" in asked.headers.get("accept", "")


@contextmanager
def proxy(decide: Callable[[Asked], Optional[Fate]]) -> Iterator[Tuple[str, List[Asked]]]:
    """A server that asks `decide` about each request; None passes it on. Yields its address and the requests."""
    asked: List[Asked] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.close_connection = True
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Asked(self.command, self.path, headers, body)
            with lock:
                asked.append(request)
                fate = decide(request)
            if fate is not None and fate.status:
                return self.reply(fate)
            self.forward(request, fate)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def reply(self, fate: Fate) -> None:
            self.send_response(fate.status)
            self.send_header("content-type", fate.content_type)
            self.send_header("content-length", str(len(fate.body)))
            self.send_header("connection", "close")
            for name, value in fate.headers:
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(fate.body)

        def forward(self, request: Asked, fate: Optional[Fate]) -> None:
            parts = urlsplit(URL)
            there = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
            there.request(request.method, request.path, body=request.body or None, headers=request.headers)
            response = there.getresponse()
            if fate is not None and fate.lose:
                there.close()
                return
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() in ("content-type", "x-request-id", "retry-after"):
                    self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.send_header("connection", "close")
            self.end_headers()
            left = fate.cut_after if fate is not None else None
            while True:
                chunk = response.read1(65536)
                if left is not None and len(chunk) > left:
                    chunk = chunk[:left]
                if chunk:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                left = None if left is None else left - len(chunk)
                if left == 0:
                    there.close()
                    return
                if not chunk:
                    break
            self.wfile.write(b"0\r\n\r\n")
            there.close()

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: the requests are in the list."""

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                # The client left.
                pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
