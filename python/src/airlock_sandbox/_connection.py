"""Connections to the server: bounded in time and number, and never used again when that could repeat a request."""

from __future__ import annotations

import http.client
import os
import select
import socket
import ssl
import threading
import time
from typing import Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from ._config import Config
from ._deadline import NEVER, Deadline

CONNECT_S = 10.0
# An idle connection is closed long before the server would do so: no request meets a connection that is just closing.
_IDLE_S = 4.0
_MOST_IDLE = 8
_CHUNK = 64 * 1024

Content = Union[bytes, Iterable[bytes]]


class Broken(Exception):
    """The connection broke, or was silent for too long. `refused`: the server cannot have seen the request."""

    def __init__(self, cause: BaseException, refused: bool = False) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.refused = refused


class Answer:
    """A response. Whoever has it reads it to its end or closes it."""

    def __init__(self, pool: Pool, connection: http.client.HTTPConnection, silence_s: float) -> None:
        self._pool = pool
        self._connection = connection
        self._socket: Optional[socket.socket] = connection.sock
        self._silence_s = silence_s
        self._response = connection.getresponse()
        self.status = self._response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in self._response.getheaders()}

    def chunks(self, deadline: Deadline = NEVER, silence_s: Optional[float] = None) -> Iterator[bytes]:
        """The body as it comes. Raises `Broken` when it does not arrive whole."""
        left = self._response.length
        try:
            if left == 0:
                # Ends the response, so that the connection is free.
                self._response.read()
            while left != 0:
                chunk = self._read(deadline, silence_s or self._silence_s, left)
                if not chunk and left is not None:
                    raise Broken(ConnectionResetError("the body is cut"))
                if not chunk:
                    break
                left = None if left is None else left - len(chunk)
                yield chunk
            self._release()
        finally:
            self.close()

    def read(self, limit: int, deadline: Deadline = NEVER) -> bytes:
        parts: List[bytes] = []
        length = 0
        for chunk in self.chunks(deadline):
            length += len(chunk)
            if length > limit:
                raise Broken(ValueError(f"the answer has more than {limit} bytes"))
            parts.append(chunk)
        return b"".join(parts)

    def close(self) -> None:
        self._response.close()
        if self._socket is not None:
            self._connection.close()
            self._socket = None

    def _read(self, deadline: Deadline, silence_s: float, left: Optional[int]) -> bytes:
        if self._socket is not None:
            self._socket.settimeout(deadline.bound(silence_s))
        try:
            # With a known length `read1` waits for a byte after the last one, in old versions of Python.
            return self._response.read1(_CHUNK) if left is None else self._response.read(min(left, _CHUNK))
        except (OSError, http.client.HTTPException, ValueError) as cause:
            if isinstance(cause, socket.timeout) and deadline.is_over:
                raise deadline.error() from None
            raise Broken(cause) from cause

    def _release(self) -> None:
        """Gives the connection back for the next request, if both sides keep it."""
        if self._socket is not None and self._response.isclosed() and not self._response.will_close:
            self._socket = None
            self._pool.keep(self._connection)


class Pool:
    """Idle connections of one client. Threads may share it; a process that was forked begins with none."""

    def __init__(self, config: Config, *, timeout_s: float, context: Optional[ssl.SSLContext]) -> None:
        self._config = config
        self._timeout_s = timeout_s
        self._context = context
        self._lock = threading.Lock()
        self._idle: List[Tuple[float, http.client.HTTPConnection]] = []
        self._process = os.getpid()

    def ask(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        content: Optional[Content],
        deadline: Deadline = NEVER,
    ) -> Answer:
        """Sends a request, and answers when the head of the response is there."""
        connection = self._take() or self._connect(deadline)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(deadline.bound(self._timeout_s))
            self._send(connection, method, target, headers, content)
            return Answer(self, connection, self._timeout_s)
        except (OSError, http.client.HTTPException) as cause:
            connection.close()
            if isinstance(cause, socket.timeout) and deadline.is_over:
                raise deadline.error() from None
            raise Broken(cause) from cause
        except BaseException:
            connection.close()
            raise

    def keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if self._process == os.getpid() and len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def __del__(self) -> None:
        for _, connection in self._idle:
            connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _take(self) -> Optional[http.client.HTTPConnection]:
        with self._lock:
            if self._process != os.getpid():
                # The connections belong to the other process.
                self._idle, self._process = [], os.getpid()
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < _IDLE_S and _is_quiet(connection):
                    return connection
                connection.close()
        return None

    def _connect(self, deadline: Deadline) -> http.client.HTTPConnection:
        host, port = self._config.host, self._config.port
        timeout = deadline.bound(CONNECT_S)
        connection: http.client.HTTPConnection
        if self._context is None:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._context)
        try:
            connection.connect()
        except (OSError, ValueError) as cause:
            connection.close()
            if isinstance(cause, socket.timeout) and deadline.is_over:
                raise deadline.error() from None
            raise Broken(cause, refused=isinstance(cause, ConnectionRefusedError)) from cause
        return connection

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        content: Optional[Content],
    ) -> None:
        is_stream = content is not None and not isinstance(content, bytes)
        extra = {"transfer-encoding": "chunked"} if is_stream else {}
        try:
            connection.request(method, target, body=content, headers={**headers, **extra}, encode_chunked=is_stream)
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses an upload answers before it is read: the answer may be there.
            if content is None:
                raise


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Nothing arrived since the last answer: not even the end of the connection."""
    if connection.sock is None:
        return False
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(connection.sock, select.POLLIN)
            return not poll.poll(0)
        return not select.select([connection.sock], [], [], 0)[0]
    except (OSError, ValueError):
        # It is closed.
        return False
