"""The compiled kernels of this machine: the entries, their state, and how to remove them."""

from __future__ import annotations

from typing import Any, TypeAlias

from kernwright import _core
from kernwright._jit import recent as _recent
from kernwright._support.typed import publish
from kernwright.errors import ArgumentError

_Rows: TypeAlias = list[dict[str, Any]]

__all__ = ["clear", "info", "list", "trim", "verify"]


def info() -> dict[str, Any]:
    """Where the cache is, whether it is used ("mode", "state", "reason"), its entries and their
    bytes, "header_bytes" of the compiler's headers, unpacked beside them, the limit of both
    together, and under "process" the hits and misses of this process by layer. Kernels asked for
    again from the same line count as memory_hits.

    >>> fill = kw.kernel("__global__ void fill(float* x) { x[threadIdx.x] = 1; }").compile()
    >>> kw.cache.info()["entries"]
    1
    """
    found = _core._cache_info()
    found["process"]["memory_hits"] += _recent.hits()
    return found


def list() -> _Rows:
    """One row for each entry on the disk, the last used first: key, source, kernels, arch,
    nvrtc_version, headers, bytes, last_used (seconds since 1970).

    >>> fill = kw.kernel("__global__ void fill(float* x) { x[threadIdx.x] = 1; }").compile()
    >>> [row["kernels"] for row in kw.cache.list()]
    [['fill']]
    """
    return _core._cache_list()


def verify(repair: bool = True) -> dict[str, Any]:
    """Reads every entry on the disk and the unpacked headers: "checked" entries, "bytes", and
    "damaged" with file and reason. Damaged entries, and headers with a damaged file, are removed
    unless `repair` is False; the next compile that needs the headers unpacks them again.

    >>> kw.cache.verify(repair=False)["damaged"]
    []
    """
    return _core._cache_verify(bool(repair))


def clear() -> dict[str, int]:
    """Removes every entry of the disk and of this process, and the unpacked headers; "entries" and
    "bytes" that are gone from the disk. Kernels that are loaded stay usable.

    >>> fill = kw.kernel("__global__ void fill(float* x) { x[threadIdx.x] = 1; }").compile()
    >>> kw.cache.clear()["entries"]
    1
    """
    _recent.clear()
    return _core._cache_clear()


def trim(limit: int) -> dict[str, int]:
    """Removes unpacked headers, then what was not used for longest, until the disk holds at most
    `limit` bytes.

    >>> kw.cache.trim(1 << 30)
    {'entries': 0, 'bytes': 0}
    """
    if isinstance(limit, bool) or not hasattr(limit, "__index__") or limit.__index__() < 0:
        raise ArgumentError(f"trim(limit) wants a number of bytes, got {limit!r}")
    return _core._cache_trim(limit.__index__())


publish(globals(), __all__)
