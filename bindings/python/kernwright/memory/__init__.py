"""Device memory: where arrays take it from, how much there is of it, and who holds it.

>>> import kernwright as kw
>>> x = kw.empty(1 << 20)
>>> kw.memory.stats()["used"] >= x.nbytes
True

Sizes are bytes. `device` is a Device, an index, a name, or None for the current device.
"""

from __future__ import annotations

import atexit
import pathlib
from types import TracebackType
from typing import Any

from kernwright import _core
from kernwright._core import (
    AsyncResource,
    CallbackResource,
    DeviceResource,
    Evictable,
    EvictionGroup,
    FailingAdaptor,
    LimitingAdaptor,
    ManagedResource,
    MemoryBlock,
    MemoryResource,
    PinnedResource,
    PoolResource,
    TrackingAdaptor,
    alloc,
)
from kernwright._support.files import told_of
from kernwright._support.typed import publish

__all__ = [
    "AsyncResource",
    "CallbackResource",
    "DeviceResource",
    "Evictable",
    "EvictionGroup",
    "FailingAdaptor",
    "LimitingAdaptor",
    "ManagedResource",
    "MemoryBlock",
    "MemoryResource",
    "PinnedResource",
    "PoolResource",
    "Snapshot",
    "TrackingAdaptor",
    "alloc",
    "leaks",
    "pinned_stats",
    "report",
    "resource",
    "set_limit",
    "snapshot",
    "stats",
    "torch_allocator",
    "transfers",
    "trim",
    "use",
]


def resource(device: Any = None) -> MemoryResource:
    """What new arrays of the device come from.

    >>> kw.memory.resource().device == kw.current_device()
    True
    """
    return _core._memory_resource(device)


def stats(device: Any = None) -> dict[str, Any]:
    """Bytes (used, used_peak, padding, cached, reserved, reserved_peak, limit), numbers of objects
    (blocks, segments) and of events (allocations, frees, hits, misses, evictions, driver_allocs,
    driver_frees, stream_waits, failures, refused_frees) in the device's resource.

    Of a pool, used + padding + cached == reserved; hits were served from cached memory.

    >>> before = kw.memory.stats()["allocations"]
    >>> x = kw.zeros(1000)
    >>> kw.memory.stats()["allocations"] - before
    1
    """
    return resource(device).stats()


def pinned_stats(device: Any = None) -> dict[str, Any]:
    """The same of the pool of page-locked host memory that `kernwright.pinned` takes from.

    >>> before = kw.memory.pinned_stats()["used"]
    >>> x = kw.pinned(1000)
    >>> kw.memory.pinned_stats()["used"] - before
    4000
    """
    return _core._pinned_resource(device).stats()


def transfers(device: Any = None) -> dict[str, int]:
    """Copies between the host's memory and the device's in this process until now: their numbers
    (to_device, to_host) and bytes (to_device_bytes, to_host_bytes).

    All copies of this library count, in every thread, also asynchronous ones. A copy in a graph
    counts once, at its capture. Arguments of kernels and fills are no copies.

    >>> import kernwright as kw
    >>> before = kw.memory.transfers()
    >>> y = kw.exp(kw.ones(1000)) * 2
    >>> kw.memory.transfers() == before
    True
    """
    return _core._transfers(device)


def trim(device: Any = None, keep: int = 0) -> int:
    """Gives cached memory back to the driver, down to `keep` reserved bytes, after the work that
    uses it. Returns how many bytes were given back.

    >>> with kw.memory.use(kw.memory.PoolResource()):
    ...     x = kw.zeros(1000)
    ...     del x
    ...     kw.memory.trim()
    2097152
    """
    return resource(device).trim(keep)


def set_limit(bytes: int | None, device: Any = None) -> None:
    """At most that many bytes may be reserved from now on; None takes the limit away. ValueError
    below what is in use.

    >>> kw.memory.set_limit(2**34)
    >>> kw.memory.stats()["limit"] == 2**34
    True
    >>> kw.memory.set_limit(None)
    """
    resource(device).set_limit(bytes)


class use:
    """Makes `resource` the one that new arrays of its device come from, at once. Earlier
    allocations stay where they are. As a context manager, until the end of the block.

    >>> with kw.memory.use(kw.memory.PoolResource(limit=1 << 30)):
    ...     x = kw.zeros(1000)
    """

    def __init__(self, resource: MemoryResource) -> None:
        self._previous = _core._memory_use(resource)
        self._resource = resource

    def __enter__(self) -> MemoryResource:
        return self._resource

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _core._memory_use(self._previous)


class Snapshot:
    """A device's memory at one moment: segments with their blocks, statistics, and how use and
    reservation changed since the resource was made. `data` is made of dicts, lists and numbers.

    >>> snapshot = kw.memory.snapshot()
    >>> snapshot.save("memory.html")
    >>> sorted(snapshot.data)
    ['device', 'history', 'resource', 'segments', 'stats']
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def to_json(self, indent: int | None = None) -> str:
        """`data` as JSON."""
        import json

        return json.dumps(self.data, indent=indent)

    def to_html(self) -> str:
        """One page without scripts or references: use over time, and a bar for each segment."""
        from kernwright.memory import _picture

        return _picture.page(self.data)

    def _repr_html_(self) -> str:
        from kernwright.memory import _picture

        return _picture.box(self.data)

    def save(self, path: str | pathlib.Path) -> None:
        """Writes HTML for a name that ends in .html, else JSON."""
        path = pathlib.Path(_core._path(path, "Snapshot.save()"))
        is_page = path.suffix.lower() in (".html", ".htm")
        text = self.to_html() if is_page else self.to_json(indent=1)
        with told_of(path, "written"):
            path.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        totals = self.data["stats"]
        return (
            f"<Snapshot of {self.data['resource']} on {self.data['device']}: "
            f"{totals['used']} bytes used, {totals['reserved']} reserved>"
        )


def snapshot(device: Any = None) -> Snapshot:
    """What the memory of the device's resource looks like now.

    >>> with kw.memory.use(kw.memory.PoolResource()):
    ...     x = kw.zeros(1000)
    ...     kw.memory.snapshot()
    <Snapshot of PoolResource on sim:0: 4000 bytes used, 2097152 reserved>
    """
    return Snapshot(resource(device).snapshot())


def leaks(device: Any = None) -> list[dict[str, Any]]:
    """The memory in use now, by the line that asked for it, the largest first: "place"
    ("app.py:12", or None), "count", "bytes" and the "serials" of the allocations.

    >>> with kw.memory.use(kw.memory.PoolResource()):
    ...     x = kw.zeros(1000)
    ...     [(row["count"], row["bytes"]) for row in kw.memory.leaks()]
    [(1, 4000)]
    """
    by_place: dict[str | None, dict[str, Any]] = {}
    for record in resource(device).records():
        row = by_place.setdefault(
            record["place"], {"place": record["place"], "count": 0, "bytes": 0, "serials": []}
        )
        row["count"] += 1
        row["bytes"] += record["bytes"]
        row["serials"].append(record["serial"])
    return sorted(by_place.values(), key=lambda row: -row["bytes"])


def report(device: Any = None) -> str:
    """leaks() as text, one line for each place.

    >>> with kw.memory.use(kw.memory.PoolResource()):
    ...     x = kw.zeros(1000)
    ...     kw.memory.report().splitlines()[0]
    '         4,000 bytes in use on sim:0'
    """
    rows = leaks(device)
    lines = [
        f"{row['bytes']:>14,} bytes in {row['count']:>6} allocation"
        f"{'s' if row['count'] != 1 else ' '} from {row['place'] or 'an unknown place'}"
        for row in rows
    ]
    total = sum(row["bytes"] for row in rows)
    return "\n".join([f"{total:>14,} bytes in use on {resource(device).device}", *lines])


def torch_allocator() -> Any:
    """An allocator for torch.cuda.memory.change_current_allocator(). Set it before torch allocates
    anything. torch's tensors then come from the current resource of each device.

    >>> import torch
    >>> torch.cuda.memory.change_current_allocator(kw.memory.torch_allocator())
    """
    import torch

    alloc_name, free_name = _core._torch_allocator_functions()
    return torch.cuda.memory.CUDAPluggableAllocator(_core.__file__, alloc_name, free_name)


def _report_at_exit() -> None:
    for text in _core._tracking_reports():
        _core._log_warning(f"memory is in use at exit on {text}")


publish(globals(), __all__)
atexit.register(_report_at_exit)
