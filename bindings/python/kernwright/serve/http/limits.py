"""Bounds of the size and the time of requests."""

from __future__ import annotations

import dataclasses

__all__ = ["Limits"]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds of requests. Beyond them a request is refused with a message about the bound."""

    body: int = 16 * 2**20
    """Bytes of a body."""
    headers: int = 64 * 2**10
    """Bytes of a request's first line and headers."""
    concurrent: int = 1024
    """Requests at a time, waiting ones included; more are refused with 429."""
    seconds: float = 3600.0
    """Of a whole request."""
    load_seconds: float = 600.0
    """For a request to wait while its model is loaded."""
    read_seconds: float = 60.0
    """For headers, and for a body."""
    write_seconds: float = 60.0
    """For a client to take the answer."""
    drain_seconds: float = 60.0
    """For running requests, once the server is told to stop."""
    choices: int = 16
    """n and best_of."""
    prompts: int = 256
    """Prompts of a completion, texts of embeddings."""
    logprobs: int = 20
    """logprobs and top_logprobs."""
    stop: int = 16
    """Stop strings."""
    stop_length: int = 1024
    """Characters of a stop string."""
    salt_length: int = 1024
    """Characters of cache_salt."""
    priorities: bool = False
    """Whether requests may have a priority: one of another may take their rows."""
    messages: int = 4096
    """Messages of a conversation."""
    tools: int = 128
    """Tools of a request."""
