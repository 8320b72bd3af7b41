"""The resources and adaptors that arrays may come from."""

import gc

import numpy as np
import pytest

import kernwright as kw
from kernwright import memory

MIB = 1 << 20

RESOURCES = {
    "device": lambda: memory.DeviceResource(),
    "async": lambda: memory.AsyncResource(),
    "managed": lambda: memory.ManagedResource(),
    "pinned": lambda: memory.PinnedResource(),
    "pool": lambda: memory.PoolResource(),
    "pool over async": lambda: memory.PoolResource(memory.AsyncResource()),
    "limiting": lambda: memory.LimitingAdaptor(memory.AsyncResource(), 1 << 40),
    "tracking": lambda: memory.TrackingAdaptor(memory.PoolResource()),
}


@pytest.mark.parametrize("make", RESOURCES.values(), ids=RESOURCES)
def test_every_resource_serves_arrays_and_kernels(make, saxpy, device):
    gc.collect()
    resource = make()
    assert resource.device == device and type(resource).__name__ in repr(resource)
    with memory.use(resource):
        assert memory.resource().name == type(resource).__name__
        x = kw.asarray(np.arange(1000, dtype=np.float32))
        y = kw.ones(1000)
        saxpy[4, 256](2.0, x, y, 1000)
        assert (y.numpy() == 1 + 2 * np.arange(1000)).all()
        assert resource.stats()["used"] == 8000
        assert [r["bytes"] for r in resource.records()] == [4000, 4000]
        del x, y
    gc.collect()
    assert resource.stats()["used"] == 0


@pytest.mark.parametrize("make", RESOURCES.values(), ids=RESOURCES)
def test_every_resource_refuses_wrong_frees(make):
    resource = make()
    address = resource.allocate(1000)
    assert address % 256 == 0
    for wrong in ((address, 999), (address + 256, 1000), (0x1000, 1)):
        with pytest.raises(kw.InvalidArgument):
            resource.deallocate(*wrong)
    resource.deallocate(address, 1000)
    with pytest.raises(kw.InvalidArgument):
        resource.deallocate(address, 1000)
    with pytest.raises(kw.InvalidArgument):
        resource.allocate(0)
    with pytest.raises(ValueError):
        resource.allocate(-1)
    with pytest.raises(OverflowError):
        resource.allocate(1 << 64)
    assert resource.stats()["blocks"] == 0


def test_adaptors_are_made_right():
    with pytest.raises(TypeError):
        memory.LimitingAdaptor(None, 5)
    with pytest.raises(ValueError):
        memory.LimitingAdaptor(memory.DeviceResource(), 0)
    with pytest.raises(TypeError):
        memory.PoolResource("upstream")
    with pytest.raises(ValueError):
        memory.PoolResource(overhead=0.5)
    with pytest.raises(ValueError):
        memory.PoolResource(smallest_segment=100)
    with pytest.raises(TypeError):
        memory.use(None)
    failing = memory.FailingAdaptor(memory.DeviceResource(), 1)
    with pytest.raises(kw.OutOfMemory, match="as planned"):
        failing.allocate(1)
    failing.deallocate(failing.allocate(1), 1)
    assert failing.calls == 2


class OtherLibrary:
    """An allocator as RMM's and CuPy's: memory by address, in the order of a stream."""

    def __init__(self, capacity):
        self.upstream = memory.AsyncResource()
        self.capacity, self.used, self.streams = capacity, 0, set()

    def allocate(self, size, stream):
        if self.used + size > self.capacity:
            raise MemoryError("the other library has no more")
        self.used += size
        self.streams.add(stream.handle)
        return self.upstream.allocate(size, stream)

    def deallocate(self, address, size, stream):
        self.used -= size
        self.upstream.deallocate(address, size, stream)


def test_memory_of_another_library_by_its_functions(saxpy, device):
    gc.collect()
    other = OtherLibrary(8 * MIB)
    resource = memory.CallbackResource(other.allocate, other.deallocate)
    stream = kw.Stream()
    with memory.use(resource), stream:
        x, y = kw.ones(1000), kw.zeros(1000)
        saxpy[4, 256, stream](3.0, x, y, 1000)
        assert (y.numpy() == 3).all()
        assert other.used == resource.stats()["used"] == 8000
        assert other.streams == {stream.handle}
        with pytest.raises(kw.OutOfMemory, match="the other library has no more"):
            kw.empty(9 * MIB, np.uint8)
        del x, y
    assert other.used == 0 and resource.records() == []
    with memory.use(memory.PoolResource(resource, smallest_segment=MIB)) as pooled:
        for _ in range(100):
            kw.empty(1000, np.uint8)
        assert other.used == MIB and pooled.stats()["hits"] == 99
        memory.trim()
        assert other.used == 0


def test_functions_of_another_library_that_do_not_do_what_they_should():
    def refuse(*_):
        raise KeyError("no such thing")

    for allocate in (refuse, lambda *_: "address", lambda *_: 12345, lambda *_: 0):
        resource = memory.CallbackResource(allocate, refuse)
        with pytest.raises(kw.Error, match="CallbackResource"):
            resource.allocate(100)
        assert resource.stats()["blocks"] == 0
    with pytest.raises(TypeError):
        memory.CallbackResource(1, 2)
    resource = memory.CallbackResource(lambda *_: 1 << 20, refuse)
    address = resource.allocate(100)
    with pytest.raises(kw.Error, match="no such thing"):
        resource.deallocate(address, 100)
    resource.set_limit(1000)
    with pytest.raises(kw.OutOfMemory, match="limit of 1000"):
        resource.allocate(1001)


def test_a_limit_on_users(device):
    with memory.use(memory.LimitingAdaptor(memory.PoolResource(), 10_000)):
        x = kw.empty(2000, np.float32)
        with pytest.raises(kw.OutOfMemory, match="limit of 10000 bytes"):
            kw.empty(1000, np.float32)
        del x
        assert kw.empty(2500, np.float32).nbytes == 10_000
    gc.collect()
