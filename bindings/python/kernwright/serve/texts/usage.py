"""How many tokens a call took."""

from __future__ import annotations

from typing import Any

from kernwright.serve.calls import Call
from kernwright.serve.protocol import StreamOptions

__all__ = ["StreamUsage", "usage"]


def usage(call: Call) -> dict[str, Any]:
    """The `usage` of a body: the same streamed and whole."""
    return {
        "prompt_tokens": call.prompt_tokens, "completion_tokens": call.completion_tokens,
        "total_tokens": call.prompt_tokens + call.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": call.cached_tokens},
    }  # fmt: skip


class StreamUsage:
    """Where a stream has its usage: last, and with `continuous_usage_stats` in each event."""

    def __init__(self, options: StreamOptions | None) -> None:
        self.last = options is not None and bool(options.include_usage)
        self._each = self.last and options is not None and bool(options.continuous_usage_stats)

    def within(self, call: Call) -> dict[str, Any]:
        """The field of an event before the last."""
        if not self.last:
            return {}
        return {"usage": usage(call) if self._each else None}
