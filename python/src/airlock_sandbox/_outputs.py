from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, cast

_TEXTS = frozenset(
    [
        "text/plain",
        "text/html",
        "text/markdown",
        "text/latex",
        "image/svg+xml",
        "image/png",
        "image/jpeg",
    ]
)


@dataclass(frozen=True)
class RichOutput:
    """A value or display beside the text of code, in several forms. A form that it does not have is None."""

    # `result` is the value of the last expression, `display` was shown on the way.
    kind: str
    # By media type: text as it is, PNG and JPEG in base64, JSON as a value.
    data: Dict[str, Any]

    @classmethod
    def of(cls, output: Mapping[str, Any]) -> RichOutput:
        # Code in a sandbox chose the content: a form of the wrong type is left out.
        data = cast(Dict[str, Any], output["data"])
        kept = {form: value for form, value in data.items() if form not in _TEXTS or isinstance(value, str)}
        return cls(cast(str, output["kind"]), kept)

    @property
    def text(self) -> Optional[str]:
        return self.data.get("text/plain")

    @property
    def html(self) -> Optional[str]:
        return self.data.get("text/html")

    @property
    def markdown(self) -> Optional[str]:
        return self.data.get("text/markdown")

    @property
    def latex(self) -> Optional[str]:
        return self.data.get("text/latex")

    @property
    def svg(self) -> Optional[str]:
        return self.data.get("image/svg+xml")

    @property
    def json(self) -> Any:
        return self.data.get("application/json")

    @property
    def png(self) -> Optional[bytes]:
        return self._picture("image/png")

    @property
    def jpeg(self) -> Optional[bytes]:
        return self._picture("image/jpeg")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        """Shows it in a notebook."""
        return dict(self.data)

    def _picture(self, form: str) -> Optional[bytes]:
        text = self.data.get(form)
        if text is None:
            return None
        try:
            return base64.b64decode(text)
        except (binascii.Error, ValueError):
            # Code in a sandbox wrote it, and it is no picture.
            return None
