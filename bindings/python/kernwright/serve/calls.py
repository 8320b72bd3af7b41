"""A request of a client: its key, its model, its begin and its end."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernwright.serve.metrics import Metrics

__all__ = ["Call"]

_ID = re.compile(r"[\x21-\x7e]{1,128}")


@dataclasses.dataclass
class Call:
    """One request of HTTP, from its first byte to its end. For one event loop."""

    id: str
    method: str
    path: str
    client: str
    user: str | None = None
    """The name of its key: what shares of the engine are counted by."""
    model: str | None = None
    status: int = 0
    reason: str = ""
    """How it ended: "stop", "length", "tool_calls", "error", "disconnected", ..."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    begin: float = dataclasses.field(default_factory=time.perf_counter)
    first: float | None = None
    """Seconds until the first token."""
    metrics: Metrics | None = None
    at_end: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)
    """Called when it ends."""
    _last: dict[int, float] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> Call:
        """The call of an ASGI scope. Its id is that of the header X-Request-Id, if it has one."""
        client = scope.get("client")
        given = next((v for k, v in scope["headers"] if k == b"x-request-id"), b"")
        text = given.decode("latin-1")
        return cls(
            text if _ID.fullmatch(text) else secrets.token_hex(12), scope["method"],
            scope["path"], f"{client[0]}:{client[1]}" if client else "",
        )  # fmt: skip

    def generating(self, model: str, prompt_tokens: int) -> None:
        """The prompts are in the engine's queue."""
        self.model, self.prompt_tokens = model, prompt_tokens
        if self.metrics is not None:
            self.metrics.queued(self)

    def token(self, choice: int) -> None:
        """A token of one of the texts has come."""
        now = time.perf_counter()
        self.completion_tokens += 1
        last = self._last.get(choice)
        self._last[choice] = now
        if self.first is None:
            self.first = now - self.begin
        if self.metrics is not None:
            self.metrics.token(self, None if last is None else now - last)

    def ended(self, choices: int, reason: str) -> None:
        """So many texts have ended for a reason. The last reason is kept."""
        self.reason = reason
        if self.metrics is not None and self.model is not None:
            self.metrics.ended(self.model, choices, reason)

    def seconds(self) -> float:
        """Since its begin."""
        return time.perf_counter() - self.begin

    def record(self) -> dict[str, Any]:
        """Its line in the log."""
        made: dict[str, Any] = {
            "id": self.id, "client": self.client, "method": self.method, "path": self.path,
            "status": self.status, "seconds": round(self.seconds(), 6),
            "reason": self.reason or ("answered" if self.status < 400 else "error"),
        }  # fmt: skip
        if self.user is not None:
            made["key"] = self.user
        if self.model is not None:
            made |= {
                "model": self.model, "prompt_tokens": self.prompt_tokens,
                "cached_tokens": self.cached_tokens, "completion_tokens": self.completion_tokens,
                "first_token_seconds": None if self.first is None else round(self.first, 6),
            }  # fmt: skip
        return made
