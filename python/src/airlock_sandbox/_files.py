from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generator, Iterable, List, Optional, Union, cast

from . import types
from ._connection import Broken
from ._faults import fault
from ._operations import Operations
from ._transport import Transport, Upload

_CHUNK = 64 * 1024
_MOST_READ = 1024 * 1024 * 1024

FileContent = Union[str, bytes, bytearray, memoryview, BinaryIO, Iterable[bytes]]


@dataclass(frozen=True)
class FileListing:
    entries: List[types.FileEntry]
    # There are more than were asked for.
    truncated: bool


class SandboxFiles:
    """Files of one sandbox. Paths are absolute, or relative to /workspace; they are resolved inside."""

    def __init__(self, transport: Transport, sandbox: str) -> None:
        self._transport = transport
        self._api = Operations(transport)
        self._sandbox = sandbox

    def read(self, path: str) -> bytes:
        return b"".join(self.read_stream(path, _MOST_READ))

    def read_text(self, path: str) -> str:
        return self.read(path).decode("utf-8", "replace")

    def read_stream(self, path: str, most_bytes: Optional[int] = None) -> Generator[bytes, None, None]:
        """For files that do not fit into memory. Raises when the file does not arrive whole."""
        answer = self._transport.send("readFile", params={"id": self._sandbox}, query={"path": path})
        length = 0
        try:
            for chunk in answer.chunks():
                length += len(chunk)
                if most_bytes is not None and length > most_bytes:
                    hint = "Use read_stream or download."
                    raise fault("body_too_large", f"{path} has more than {most_bytes} bytes.", hint=hint)
                yield chunk
        except Broken as broken:
            message = "The connection broke before the whole file was here."
            raise fault("server_unreachable", message) from broken.cause
        finally:
            answer.close()

    def write(self, path: str, content: FileContent) -> int:
        """Replaces the content, or makes the file. Answers how many bytes were written."""
        return self._write(path, content, append=False)

    def append(self, path: str, content: FileContent) -> int:
        return self._write(path, content, append=True)

    def upload(self, local: Union[str, "os.PathLike[str]"], path: str) -> int:
        """Copies a file of this machine into the sandbox, whatever its size."""
        try:
            source = open(local, "rb")
        except OSError as cause:
            message = f"{os.fspath(local)} cannot be read ({cause.strerror})."
            raise fault("invalid_request", message, hint="Give a file; directories go one file at a time.") from cause
        with source:
            return self.write(path, source)

    def download(self, path: str, local: Union[str, "os.PathLike[str]"]) -> int:
        """Copies a file of the sandbox to this machine. A download that breaks leaves the old file as it was."""
        target = Path(local)
        length = 0
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as part:
            try:
                for chunk in self.read_stream(path):
                    length += part.write(chunk)
                part.close()
                os.replace(part.name, target)
            except BaseException:
                part.close()
                os.unlink(part.name)
                raise
        return length

    def stat(self, path: str) -> types.FileEntry:
        return self._api.stat_file(self._sandbox, path=path)

    def list(self, path: str = "/workspace", *, limit: Optional[int] = None) -> FileListing:
        answer = self._api.list_files(self._sandbox, path=path, limit=limit)
        return FileListing(answer["entries"], answer["truncated"])

    def mkdir(self, path: str, *, parents: bool = True) -> None:
        self._api.make_directory(self._sandbox, {"path": path, "parents": parents})

    def move(self, source: str, target: str) -> None:
        self._api.move_file(self._sandbox, {"from": source, "to": target})

    def remove(self, path: str, *, recursive: bool = False) -> None:
        self._api.remove_file(self._sandbox, path=path, recursive=recursive)

    def _write(self, path: str, content: FileContent, *, append: bool) -> int:
        query = {"path": path, "append": append or None}
        params = {"id": self._sandbox}
        answer = self._transport.json("writeFile", params=params, query=query, upload=as_upload(content))
        return cast(int, answer["bytes"])


def as_upload(content: FileContent) -> Upload:
    """A file is read in pieces; all else is sent as it is."""
    if isinstance(content, (str, bytes, bytearray, memoryview)):
        return content
    read = getattr(content, "read", None)
    if read is None:
        return content
    return iter(lambda: cast(bytes, read(_CHUNK)), b"")
