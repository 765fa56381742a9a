from __future__ import annotations

import time
from typing import Optional

from ._faults import fault


class Deadline:
    """The end of a wait, or none."""

    def __init__(self, wait_s: Optional[float] = None) -> None:
        self._wait_s = wait_s
        self._at = None if wait_s is None else time.monotonic() + wait_s

    def bound(self, seconds: float) -> float:
        """Seconds, or what is left when that is less. Raises when nothing is left."""
        if self._at is None:
            return seconds
        left = self._at - time.monotonic()
        if left <= 0:
            raise self.error()
        return min(seconds, left)

    @property
    def is_over(self) -> bool:
        return self._at is not None and time.monotonic() >= self._at

    def sleep(self, seconds: float) -> None:
        time.sleep(self.bound(seconds))
        self.bound(0)

    def error(self) -> Exception:
        return fault(
            "timeout",
            f"It did not end within {self._wait_s:g} s.",
            hint="Wait longer (wait_s), or look at it again later.",
        )


NEVER = Deadline()
