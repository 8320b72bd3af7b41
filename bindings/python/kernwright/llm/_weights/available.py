"""How many bytes a device has left."""

from __future__ import annotations

from typing import Any

import kernwright as kw

__all__ = ["available_bytes"]


def available_bytes(device: Any) -> int:
    """Bytes that arrays can still take: free ones and those of the pool that nobody uses."""
    with device:
        found = kw.memory.stats()
    free = device.memory_info().free + found["reserved"] - found["used"]
    limit = found.get("limit")
    return int(free if limit is None else min(free, limit - found["used"]))
