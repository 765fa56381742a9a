"""Answers and events that report an error, as exceptions."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping, Optional

from ._airlock_error import AirlockError
from .errors import ERRORS


def fault(
    code: str,
    message: Optional[str] = None,
    *,
    hint: Optional[str] = None,
    request_id: Optional[str] = None,
    approval: Optional[str] = None,
    retry_after_s: Optional[float] = None,
) -> AirlockError:
    """An error of the registry. A code that this version does not know becomes `internal`, with the server's words."""
    known = code if code in ERRORS else "internal"
    row = ERRORS[known]
    return row.error(
        known,
        row.message if message is None else message,
        hint=row.hint if hint is None else hint,
        status=row.status,
        retryable=row.retryable,
        fixed_by=row.fixed_by,
        request_id=request_id,
        approval=approval,
        retry_after_s=retry_after_s,
    )


def fault_of_answer(status: int, headers: Mapping[str, str], body: bytes) -> AirlockError:
    request_id = headers.get("x-request-id")
    told = _told(body)
    if told is None:
        return fault(
            "internal",
            f"The server answered {status} and no error of ours.",
            hint="Check that AIRLOCK_URL is an Airlock server.",
            request_id=request_id,
        )
    return fault_of_event(told, request_id=request_id, retry_after_s=_seconds(headers.get("retry-after")))


def fault_of_event(
    told: Mapping[str, Any], *, request_id: Optional[str] = None, retry_after_s: Optional[float] = None
) -> AirlockError:
    approval = told.get("approval")
    return fault(
        str(told.get("code")),
        str(told.get("message")),
        hint=str(told.get("hint") or ""),
        request_id=request_id,
        approval=approval if isinstance(approval, str) else None,
        retry_after_s=retry_after_s,
    )


def _told(body: bytes) -> Optional[Mapping[str, Any]]:
    try:
        told = json.loads(body)["error"]
    except (ValueError, TypeError, KeyError):
        # Another program than our server answered.
        return None
    if not isinstance(told, dict) or not isinstance(told.get("code"), str) or not isinstance(told.get("message"), str):
        return None
    return told


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        seconds = float(text) if text else math.nan
    except ValueError:
        # A date, which our server never sends.
        return None
    return seconds if math.isfinite(seconds) else None
