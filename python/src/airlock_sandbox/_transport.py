"""HTTP for the rest of the client: addresses, keys, errors, and the retries that cannot do harm."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple, Union
from urllib.parse import quote, urlencode

from ._airlock_error import AirlockError
from ._config import Config
from ._connection import Answer, Broken, Content, Pool
from ._deadline import NEVER, Deadline
from ._faults import fault, fault_of_answer
from ._operations import ROUTES, VERSION, QueryValue

RETRIES = 2
BACKOFF_S = 0.1
# The error of a server that asks for more patience is passed on instead.
_MOST_RETRY_AFTER_S = 5.0
# The server waits for 300 seconds, but the client gives up then.
_MOST_WAIT_APPROVAL_S = 240
_MOST_JSON = 256 * 1024 * 1024
_MOST_ERROR = 64 * 1024

_ASK_ADMIN = "ask an admin for one: airlock keys create NAME --role developer"
_CHECK_URL = "Check AIRLOCK_URL: its port, and whether it is http or https."

Upload = Union[str, bytes, bytearray, memoryview, Iterable[bytes]]


class Transport:
    def __init__(
        self,
        config: Config,
        *,
        timeout_s: float,
        wait_approval_s: Optional[float] = None,
        ca_file: Optional[str] = None,
    ) -> None:
        self._config = config
        self._pool = Pool(config, timeout_s=timeout_s, context=_context(config, ca_file))
        self._headers: Dict[str, str] = {
            "user-agent": f"airlock-sandbox-python/{VERSION}",
            "accept": "application/json",
        }
        if config.api_key is not None:
            self._headers["authorization"] = f"Bearer {config.api_key}"
        if wait_approval_s is not None:
            seconds = max(0, min(_MOST_WAIT_APPROVAL_S, round(wait_approval_s)))
            self._headers["airlock-wait-approval"] = str(seconds)

    @property
    def url(self) -> str:
        return self._config.origin

    def close(self) -> None:
        self._pool.close()

    def json(
        self,
        name: str,
        *,
        params: Optional[Mapping[str, str]] = None,
        query: Optional[Mapping[str, QueryValue]] = None,
        body: Optional[object] = None,
        upload: Optional[Upload] = None,
        deadline: Deadline = NEVER,
    ) -> Any:
        answer = self.send(name, params=params, query=query, body=body, upload=upload, deadline=deadline)
        try:
            text = answer.read(_MOST_JSON, deadline)
        except Broken as broken:
            raise self.unreachable(broken) from broken.cause
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError as cause:
            hint = "Check that AIRLOCK_URL is an Airlock server."
            raise fault("internal", "The server answered something that is not JSON.", hint=hint) from cause

    def send(
        self,
        name: str,
        *,
        params: Optional[Mapping[str, str]] = None,
        query: Optional[Mapping[str, QueryValue]] = None,
        body: Optional[object] = None,
        upload: Optional[Upload] = None,
        headers: Optional[Mapping[str, str]] = None,
        deadline: Deadline = NEVER,
    ) -> Answer:
        """A response with a good status; raises `AirlockError` for every other."""
        if self._config.api_key is None:
            raise fault("unauthenticated", "There is no API key.", hint=self._config.no_key)
        content = _content(body, upload)
        target = _target(ROUTES[name].path, params or {}, query or {})
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent["content-type"] = "application/json"
        attempt = 0
        while True:
            try:
                return self._attempt(name, target, sent, content, deadline)
            except Broken as broken:
                wait_s = _wait_after_break(name, content, broken)
                error, cause = self.unreachable(broken), broken.cause
            except AirlockError as refused:
                wait_s = _wait_after_refusal(name, content, refused)
                error, cause = refused, None
            if wait_s is None or attempt >= RETRIES:
                raise error from cause
            deadline.sleep(wait_s * 2**attempt)
            attempt += 1

    def unreachable(self, broken: Broken) -> AirlockError:
        message, hint = _describe(self._config, broken)
        return fault("server_unreachable", message, hint=hint)

    def _attempt(
        self, name: str, target: str, headers: Mapping[str, str], content: Optional[Content], deadline: Deadline
    ) -> Answer:
        answer = self._pool.ask(ROUTES[name].method, target, headers=headers, content=content, deadline=deadline)
        if 200 <= answer.status < 300:
            return answer
        try:
            body = answer.read(_MOST_ERROR, deadline)
        except Broken:
            # The status alone says that it failed.
            body = b""
        raise self._explain(fault_of_answer(answer.status, answer.headers, body))

    def _explain(self, error: AirlockError) -> AirlockError:
        """The server does not know where a key is from, and the client does."""
        if error.code != "unauthenticated":
            return error
        key_from = self._config.key_from
        if key_from.startswith("The key in"):
            hint = "Another server listens there: set AIRLOCK_URL, or AIRLOCK_HOME to the directory of its state."
        elif key_from == "AIRLOCK_API_KEY":
            hint = f"On the machine of the server, unset it; elsewhere, {_ASK_ADMIN}"
        else:
            hint = f"Give another, or {_ASK_ADMIN}"
        message = f"{key_from} is no key of {self._config.origin}."
        return fault("unauthenticated", message, hint=hint, request_id=error.request_id)


def is_refused(error: BaseException) -> bool:
    """Nothing listened: the server cannot have seen the request."""
    return isinstance(error.__cause__, ConnectionRefusedError)


def _wait_after_break(name: str, content: Optional[Content], broken: Broken) -> Optional[float]:
    """None when trying again could do something twice, or nothing is left to send."""
    if not _is_replayable(content):
        return None
    return BACKOFF_S if broken.refused or ROUTES[name].repeats else None


def _wait_after_refusal(name: str, content: Optional[Content], error: AirlockError) -> Optional[float]:
    if not ROUTES[name].repeats or not error.retryable or not _is_replayable(content):
        return None
    if error.retry_after_s is None:
        return BACKOFF_S
    return error.retry_after_s if error.retry_after_s <= _MOST_RETRY_AFTER_S else None


def _is_replayable(content: Optional[Content]) -> bool:
    return content is None or isinstance(content, bytes)


def _content(body: Optional[object], upload: Optional[Upload]) -> Optional[Content]:
    if body is not None:
        return json.dumps(body, allow_nan=False).encode("ascii")
    if isinstance(upload, str):
        return upload.encode("utf-8")
    if isinstance(upload, (bytearray, memoryview)):
        return bytes(upload)
    return upload


def _target(path: str, params: Mapping[str, str], query: Mapping[str, QueryValue]) -> str:
    filled = re.sub(r"\{(\w+)\}", lambda match: quote(params[match[1]], safe=""), path)
    pairs = [(name, _text(value)) for name, value in query.items() if value is not None]
    return f"{filled}?{urlencode(pairs)}" if pairs else filled


def _text(value: QueryValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _context(config: Config, ca_file: Optional[str]) -> Optional[ssl.SSLContext]:
    if config.scheme != "https":
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as cause:
        message = f"The certificates in {ca_file} could not be read."
        raise fault("config_invalid", message, hint="Give a PEM file as ca_file.") from cause


def _describe(config: Config, broken: Broken) -> Tuple[str, str]:
    cause, origin = broken.cause, config.origin
    place = origin.split("://", 1)[1]
    if isinstance(cause, ssl.SSLCertVerificationError):
        hint = "Set SSL_CERT_FILE, or ca_file, to a PEM file with the authority that issued it."
        return f"The certificate of {origin} is not trusted.", hint
    if isinstance(cause, ssl.SSLError):
        return f"The server at {place} does not speak https.", f"Set AIRLOCK_URL=http://{place}"
    if isinstance(cause, http.client.BadStatusLine) and not isinstance(cause, ConnectionResetError):
        return f"The server at {place} does not speak http.", f"Is it https? {_CHECK_URL}"
    if broken.refused:
        hint = 'Start one with "npm start".' if config.is_local else "Check AIRLOCK_URL, and that the server runs."
        return f"No Airlock server answers at {origin}.", hint
    return f"The connection to {origin} broke.", f"See that the server runs. {_CHECK_URL}"
