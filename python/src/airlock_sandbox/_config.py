"""Address and key of the server: given, from the environment, or of the server on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple
from urllib.parse import SplitResult, urlsplit

from ._faults import fault

DEFAULT_URL = "http://127.0.0.1:7070"
_LOOPBACK = frozenset(["localhost", "127.0.0.1", "::1"])


class Config(NamedTuple):
    scheme: str
    host: str
    port: int
    # Of the server, as it is shown in messages: scheme, host and port.
    origin: str
    is_local: bool
    api_key: Optional[str]
    # The hint of the error that the first call without a key raises.
    no_key: str
    # Where the key is from, for the error of a server that does not know it.
    key_from: str


def resolve_config(url: Optional[str] = None, api_key: Optional[str] = None, role: str = "developer") -> Config:
    """Arguments win over the environment, and the environment over files of a server on this machine."""
    parts = _parse_url(url or os.environ.get("AIRLOCK_URL") or DEFAULT_URL)
    host = parts.hostname or ""
    is_local = host in _LOOPBACK
    key, no_key, key_from = _find_key(api_key, role, is_local)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    shown = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{shown}" + (f":{parts.port}" if parts.port else "")
    return Config(parts.scheme, host, port, origin, is_local, key, no_key, key_from)


def state_directories() -> List[Path]:
    """Where a server on this machine may keep its state, the likeliest first. AIRLOCK_HOME is the only one when set."""
    home = os.environ.get("AIRLOCK_HOME")
    return [Path(home)] if home else [Path("/var/lib/airlock"), Path(os.path.expanduser("~")) / ".airlock"]


def _find_key(given: Optional[str], role: str, is_local: bool) -> Tuple[Optional[str], str, str]:
    if role not in ("developer", "admin"):
        raise fault("invalid_request", 'The role is "developer" or "admin".', hint="It chooses a key of this machine.")
    if given is not None:
        return _checked(given), "", "The given api_key"
    variable = os.environ.get("AIRLOCK_API_KEY")
    if variable:
        return _checked(variable), "", "AIRLOCK_API_KEY"
    # Keys beside the state are for the server on this machine: another one must not see them.
    if not is_local:
        return None, "Set AIRLOCK_API_KEY.", "AIRLOCK_API_KEY"
    no_key = 'Start a server on this machine with "npm start", or set AIRLOCK_API_KEY.'
    for directory in state_directories():
        path = directory / f"{role}.key"
        try:
            return _checked(path.read_text("utf-8")), "", f"The key in {path}"
        except PermissionError:
            no_key = f"Only root can read {path}: use sudo, or set AIRLOCK_API_KEY."
        except (OSError, UnicodeDecodeError):
            # Not there: the next directory may have it.
            continue
    return None, no_key, "AIRLOCK_API_KEY"


def _checked(key: str) -> str:
    key = key.strip()
    if key.isascii() and key.isprintable() and " " not in key:
        return key
    raise fault("unauthenticated", "The API key has a character that no key has.", hint="Give it as it was printed.")


def _parse_url(text: str) -> SplitResult:
    hint = f"Set AIRLOCK_URL to something like {DEFAULT_URL}."
    try:
        parts = urlsplit(text)
        # Reading the port parses it.
        if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0:
            return parts
    except ValueError:
        # The error below says it better.
        pass
    raise fault("config_invalid", "The address of the server is not an http or https URL.", hint=hint)
