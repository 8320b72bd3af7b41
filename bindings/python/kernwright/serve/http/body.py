"""The bytes of a body, within bounds of size and time."""

from __future__ import annotations

import asyncio
from typing import Any

from kernwright.serve.http.errors import ApiError
from kernwright.serve.http.limits import Limits
from kernwright.serve.http.streaming import ClientGone

__all__ = ["read_body"]

_timeout: Any = getattr(asyncio, "timeout", None)  # from Python 3.11 on


async def read_body(scope: Any, receive: Any, limits: Limits) -> bytes:
    """Raises ApiError for a too large or too slow body, ClientGone where it ends early."""
    for name, value in scope["headers"]:
        if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise ApiError(
                415, f"the content-encoding {value.decode('latin-1')!r:.40} is not supported: send "
                "the body as it is", code="unsupported_encoding",
            )  # fmt: skip
        if name == b"content-length" and value.isdigit() and int(value) > limits.body:
            raise _too_large(limits.body, f"{int(value)}")
    try:
        if _timeout is None:
            return await asyncio.wait_for(_read(receive, limits.body), limits.read_seconds)
        async with _timeout(limits.read_seconds):  # as wait_for(), without a task
            return await _read(receive, limits.body)
    except asyncio.TimeoutError:
        raise ApiError(
            408, f"the body did not come within {limits.read_seconds:g} s", code="timeout"
        ) from None


async def _read(receive: Any, most: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most, f"more than {size}")
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(most: int, size: str) -> ApiError:
    return ApiError(413, f"a body has {most} bytes at most, got {size}", code="body_too_large")
