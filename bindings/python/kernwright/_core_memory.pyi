"""Types of the extension module that are about memory; `_core` has them."""

from collections.abc import Callable
from typing import Any, SupportsIndex, final

import numpy as np
import numpy.typing as npt

from kernwright._core import Array, Device, Stream

_DeviceLike = Device | int | str | None

class MemoryResource:
    """Where memory comes from, in the order of a stream. Sizes are bytes.

    Memory may be used by work that is queued on the stream of its allocation after it. It may be
    given back while work queued before still uses it. kw.memory.use(resource) makes new arrays
    come from it.

    >>> resource = kw.memory.resource()
    >>> address = resource.allocate(1024)
    >>> resource.deallocate(address, 1024)
    """

    @property
    def name(self) -> str:
        """The class's name, as reports and messages show it."""
    @property
    def device(self) -> Device:
        """The device whose memory it is."""
    def allocate(self, bytes: SupportsIndex, stream: Any = None) -> int:
        """The address of new memory, aligned to 256 bytes or more, for work of `stream` (default:
        the current one). Raises OutOfMemory, and InvalidArgument for 0 bytes."""
    def deallocate(self, address: int, bytes: SupportsIndex, stream: Any = None) -> None:
        """Gives memory back, after the work of `stream` so far. Raises InvalidArgument for an
        address or a size that was not allocated."""
    def stats(self) -> dict[str, Any]:
        """Bytes in use, cached and reserved, and counts of what happened; as kw.memory.stats()."""
    def records(self) -> list[dict[str, Any]]:
        """What is allocated now, in the order of allocation: address, bytes, stream, place in the
        program."""
    def snapshot(self) -> dict[str, Any]:
        """Segments, blocks and records as plain values; kw.memory.snapshot() shows them."""
    def trim(self, keep: SupportsIndex = 0) -> int:
        """Gives cached memory back until at most `keep` bytes are reserved; waits for work that
        uses it. Returns the bytes given back."""
    def set_limit(self, bytes: SupportsIndex | None) -> None:
        """Reserves at most that many bytes from now on; None: no limit. Raises InvalidArgument
        below what is in use."""

class DeviceResource(MemoryResource):
    """The driver's plain device memory, without reuse.

    >>> with kw.memory.use(kw.memory.DeviceResource()):
    ...     x = kw.zeros(1000)
    """

    def __init__(self, device: _DeviceLike = None) -> None: ...

class AsyncResource(MemoryResource):
    """The driver's own stream-ordered pool.

    >>> with kw.memory.use(kw.memory.AsyncResource()):
    ...     x = kw.zeros(1000)
    """

    def __init__(self, device: _DeviceLike = None) -> None: ...

class ManagedResource(MemoryResource):
    """Managed memory: its pages move to the host or the device that uses them.

    >>> with kw.memory.use(kw.memory.ManagedResource()):
    ...     x = kw.zeros(1000)
    """

    def __init__(self, device: _DeviceLike = None) -> None: ...

class PinnedResource(MemoryResource):
    """Page-locked host memory, without reuse.

    >>> resource = kw.memory.PinnedResource()
    >>> address = resource.allocate(1024)
    >>> resource.deallocate(address, 1024)
    """

    def __init__(self, device: _DeviceLike = None) -> None: ...

class CallbackResource(MemoryResource):
    """Memory of another library: `allocate(bytes, stream)` gives an address and raises MemoryError
    when there is none, `deallocate(address, bytes, stream)` takes it back.

    >>> other = kw.memory.DeviceResource()    # here, another library's functions
    >>> resource = kw.memory.CallbackResource(other.allocate, other.deallocate)
    >>> with kw.memory.use(resource):
    ...     x = kw.zeros(1000)
    >>> resource.stats()["used"]
    4000
    """

    def __init__(
        self,
        allocate: Callable[[int, Stream], int],
        deallocate: Callable[[int, int, Stream], Any],
        device: _DeviceLike = None,
    ) -> None: ...

class PoolResource(MemoryResource):
    """Keeps freed memory of an upstream resource for reuse, in stream order. The default of
    arrays.

    `upstream` is a DeviceResource where none is given. It asks upstream for segments of at least
    `smallest_segment` bytes and grows by at most `largest_step` bytes beyond what is needed;
    `overhead` is a bound for cached blocks: they may be larger than a request by this factor at
    most. `limit` bounds the bytes reserved.

    >>> with kw.memory.use(kw.memory.PoolResource(limit=1 << 30)):
    ...     x = kw.zeros(1000)
    """

    def __init__(
        self,
        upstream: MemoryResource | None = None,
        *,
        device: _DeviceLike = None,
        smallest_segment: SupportsIndex | None = None,
        largest_step: SupportsIndex | None = None,
        overhead: float = 1.3,
        limit: SupportsIndex | None = None,
    ) -> None: ...
    @property
    def upstream(self) -> MemoryResource:
        """The resource that segments come from."""

class ResourceAdaptor(MemoryResource):
    """Passes calls on to an upstream resource, and adds to them."""

    @property
    def upstream(self) -> MemoryResource:
        """The resource that calls are passed on to."""

class LimitingAdaptor(ResourceAdaptor):
    """Refuses what would bring the bytes in use above a limit.

    >>> small = kw.memory.LimitingAdaptor(kw.memory.DeviceResource(), 1 << 20)
    >>> with kw.memory.use(small):
    ...     try:
    ...         kw.empty(1 << 20)
    ...     except kw.OutOfMemory as error:
    ...         print(error.requested)
    4194304
    """

    def __init__(self, upstream: MemoryResource, limit: SupportsIndex) -> None: ...

class TrackingAdaptor(ResourceAdaptor):
    """Records the line of the program for each allocation, and reports the rest at exit.

    >>> tracking = kw.memory.TrackingAdaptor(kw.memory.DeviceResource())
    >>> with kw.memory.use(tracking):
    ...     kept = kw.empty(256)
    >>> "1 allocation" in tracking.report()
    True
    """

    def __init__(self, upstream: MemoryResource) -> None: ...
    def report(self) -> str:
        """The allocated memory by the line of the program that asked for it, largest first."""

class FailingAdaptor(ResourceAdaptor):
    """Lets the allocations number `first` (from 1) up to `first + times - 1` fail with
    OutOfMemory: for tests of what a program does then.

    >>> with kw.memory.use(kw.memory.FailingAdaptor(kw.memory.DeviceResource(), first=2)):
    ...     a = kw.empty(4)
    ...     try:
    ...         b = kw.empty(4)
    ...     except kw.OutOfMemory:
    ...         print("the second one")
    the second one
    """

    def __init__(self, upstream: MemoryResource, first: int, times: int = 1) -> None: ...
    @property
    def calls(self) -> int:
        """Allocations asked for so far, failed ones included."""

@final
class MemoryBlock:
    """Device memory without a shape, freed with this object; made by kw.memory.alloc().

    A launch takes it for any pointer. kw.Pointer(block.ptr, dtype) tells its type as well, which
    the launch then checks.

    >>> block = kw.memory.alloc(4096)
    >>> saxpy[1, 256](1.0, x, block, n)
    >>> block.free()
    """

    @property
    def ptr(self) -> int:
        """The device address. Raises InvalidArgument once the memory was freed."""
    @property
    def nbytes(self) -> int:
        """Bytes that were asked for."""
    @property
    def device(self) -> Device:
        """The device that has the memory."""
    def free(self) -> None:
        """Gives the memory back now, before the object goes. Again: nothing happens."""

class EvictionGroup:
    """The evictable arrays of one owner: which of them may leave the device, and when.

    `qos` is "best_effort": these go first; "burstable": these go next, while the group has more
    than `request` bytes on the device; or "guaranteed": these stay. Both may be set anew at any
    time, from any thread. A `whole` group moves as one: its arrays without a pin follow the first.
    Raises InvalidArgument for another word.

    >>> group = kw.memory.EvictionGroup("burstable", request=2000)
    >>> held = kw.memory.Evictable(kw.ones(1000), group=group)
    >>> group.resident
    4000
    """

    def __init__(self, qos: str, request: int = 0, whole: bool = False) -> None: ...
    @property
    def qos(self) -> str:
        """The class."""
    @qos.setter
    def qos(self, name: str) -> None: ...
    @property
    def request(self) -> int:
        """Bytes that a burstable group may keep on the device."""
    @request.setter
    def request(self, bytes: int) -> None: ...
    @property
    def resident(self) -> int:
        """Bytes of its arrays on the device."""

class Evictable:
    """The content of an array, which may move to the host while it is not pinned.

    When an allocation finds no memory, contents move to the host: by the class of their `group`
    (None: best effort), then those that were not pinned for longest; content that came back
    shortly before goes after the others. The next pin() brings it back, bit for bit.

    >>> held = kw.memory.Evictable(kw.ones(1000))
    >>> held.evict(), held.resident
    (True, False)
    >>> float(held.pin().sum())
    1000.0
    """

    def __init__(self, array: Array, *, group: EvictionGroup | None = None) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the array."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
    @property
    def device(self) -> Device:
        """The device where the content is while it is pinned."""
    @property
    def group(self) -> EvictionGroup | None:
        """The group that it was made in."""
    @property
    def resident(self) -> bool:
        """Whether the content is on the device at this moment."""
    @property
    def pinned(self) -> bool:
        """Whether an array of pin() still lives."""
    def pin(self) -> Array:
        """The array, brought to the device; the content stays there while the array or a view
        lives. Raises OutOfMemory."""
    def evict(self) -> bool:
        """Moves the content to the host now. False when it is pinned or there already."""

def alloc(nbytes: SupportsIndex, stream: Any = None, /) -> MemoryBlock:
    """Device memory of `nbytes` bytes, in the order of `stream` (default: the current one). Raises
    OutOfMemory; ArgumentRangeError for 2**63 bytes or more.

    >>> block = kw.memory.alloc(1024)
    >>> block.nbytes
    1024
    """

def _memory_resource(device: _DeviceLike = None) -> MemoryResource: ...
def _memory_use(resource: MemoryResource) -> MemoryResource: ...
def _pinned_resource(device: _DeviceLike = None) -> MemoryResource: ...
def _pinned_block(bytes: int, device: _DeviceLike = None) -> npt.NDArray[np.uint8]: ...
def _transfers(device: _DeviceLike = None) -> dict[str, int]: ...
def _torch_allocator_functions() -> tuple[str, str]: ...
def _tracking_reports() -> list[str]: ...
def _log_warning(text: str) -> None: ...
