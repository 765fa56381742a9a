"""Arguments of methods as bodies and queries of requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Generic, Iterator, List, Mapping, Optional, TypeVar

T = TypeVar("T")


def body_of(**fields: Any) -> Any:
    """The fields that are given, with the names of the wire: `ttl_ms` is `ttlMs`."""
    return {camel(name): value for name, value in fields.items() if value is not None}


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name.rstrip("_"))


def label_query(labels: Optional[Mapping[str, str]]) -> Optional[str]:
    return ",".join(f"{key}={value}" for key, value in labels.items()) if labels else None


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list. `next_cursor` asks for the next one, and is None at the end."""

    items: List[T]
    next_cursor: Optional[str]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
