from __future__ import annotations

from typing import Any, Dict, Optional, Tuple, Type


class AirlockError(Exception):
    """Raised by every call: a code to branch on, one sentence, and a hint that says who can fix it."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        status: int = 500,
        retryable: bool = False,
        fixed_by: str = "caller",
        request_id: Optional[str] = None,
        approval: Optional[str] = None,
        retry_after_s: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.status = status
        # Trying again later may help.
        self.retryable = retryable
        # caller, administrator, operator or time.
        self.fixed_by = fixed_by
        # Names the request in the log of the server; None when no server answered.
        self.request_id = request_id
        # The request for approval that a person must answer, or has rejected.
        self.approval = approval
        # Seconds after which trying again makes sense.
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, {self.message!r})"

    def __reduce__(self) -> Tuple[Any, Tuple[Type[AirlockError], Dict[str, Any]]]:
        # An error passes from one process to another whole.
        return _restore, (type(self), dict(self.__dict__))


def _restore(kind: Type[AirlockError], fields: Dict[str, Any]) -> AirlockError:
    return kind(fields.pop("code"), fields.pop("message"), **fields)
