"""Arrays of other libraries in and out: DLPack and __cuda_array_interface__."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
from conftest import DTYPES

import kernwright as kw


class Other:
    """An array of another library: all it knows is DLPack."""

    def __init__(self, array, versioned=True):
        self.array, self.versioned, self.streams = array, versioned, []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.array.__dlpack__(
            stream=stream, max_version=max_version if self.versioned else None
        )


class OldOther(Other):
    """A capsule from before DLPack had versions."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("kind", [Other, OldOther])
def test_dlpack_round_trip_shares_memory(name, kind):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = kw.ones((3, 4), name)
    view = kw.from_dlpack(kind(x[1:, ::2]))
    assert view.ptr == x.ptr + 4 * dtype.itemsize
    assert view.dtype == dtype and view.shape == (2, 2) and view.strides == x[1:, ::2].strides
    view[...] = 0
    assert x.numpy().astype(np.float64).sum() == 8


def test_dlpack_of_odd_shapes():
    for shape in ((), (0,), (3, 0, 2), (1, 1, 5)):
        view = kw.from_dlpack(Other(kw.zeros(shape)))
        assert view.shape == shape and view.numpy().shape == shape


def test_a_view_keeps_its_producer_alive():
    x = kw.full(5, 7.0)
    view = kw.from_dlpack(Other(x))
    del x
    gc.collect()
    assert (view.numpy() == 7).all()


def test_an_unused_capsule_frees_what_it_holds(device):
    free = device.memory_info().free
    for _ in range(100):
        kw.zeros(1 << 20).__dlpack__()
    device.synchronize()
    assert free - device.memory_info().free < 64 << 20


def test_other_arrays_go_straight_into_a_launch(saxpy):
    x, y = kw.ones(32), kw.zeros(32)
    saxpy[1, 32](2.0, Other(x), OldOther(y), 32)
    assert (y.numpy() == 2).all()
    with pytest.raises(kw.ArgumentError, match=r"parameter 2.*float64"):
        saxpy[1, 32](2.0, Other(kw.ones(32, "float64")), y, 32)
    with pytest.raises(kw.ArgumentError, match="contiguous"):
        saxpy[1, 16](2.0, Other(x[::2]), y, 16)
    saxpy[1, 16](2.0, kw.strided(Other(x[::2])), y, 16)


def test_asarray_takes_other_arrays_without_a_copy():
    x = kw.ones(4)
    assert kw.asarray(Other(x)).ptr == x.ptr
    assert kw.asarray(Other(x), copy=True).ptr != x.ptr
    assert kw.asarray(Other(x), "float64").dtype == np.float64
    assert kw.asarray(x) is x
    assert kw.asarray(x, copy=True).ptr != x.ptr
    for refused in ({"dtype": "int8"}, {"device": "sim"} if not x.device.is_simulated else None):
        if refused:
            with pytest.raises(ValueError):
                kw.asarray(x, copy=False, **refused)
    with pytest.raises(ValueError, match="host memory"):
        kw.asarray(np.ones(3), copy=False)


def test_from_dlpack_refuses_host_arrays():
    with pytest.raises(kw.ArgumentError, match="asarray"):
        kw.from_dlpack(np.ones(3))
    with pytest.raises(kw.ArgumentError, match="__dlpack__"):
        kw.from_dlpack([1, 2])


def test_numpy_reads_through_dlpack_only_when_it_asks_for_the_host():
    x = kw.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(x)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), x.numpy())
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(10, 0))


def test_capsules_are_used_once():
    x = kw.ones(3)
    capsule = x.__dlpack__()

    class Same:
        def __dlpack_device__(self):
            return x.__dlpack_device__()

        def __dlpack__(self, **_):
            return capsule

    assert kw.from_dlpack(Same()).ptr == x.ptr
    with pytest.raises(Exception, match=r"[Cc]apsule"):
        kw.from_dlpack(Same())


def interface_of(array, **changes):
    class Interface:
        __cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ptr, False),
            "strides": None if array.is_contiguous else array.strides,
            "version": 3,
            "stream": None,
            **changes,
        }

    instance = Interface()
    instance.keeps = array
    return instance


def test_the_interface_of_cuda_arrays_goes_in(saxpy):
    x, y = kw.ones(16), kw.zeros(16)
    saxpy[1, 16](3.0, interface_of(x), interface_of(y), 16)
    assert (y.numpy() == 3).all()
    view = kw.asarray(interface_of(x[::2]))
    assert view.ptr == x.ptr and view.strides == (8,)
    with pytest.raises(kw.ArgumentError, match="contiguous"):
        saxpy[1, 8](3.0, interface_of(x[::2]), y, 8)
    with pytest.raises(kw.ArgumentError, match="int32"):
        saxpy[1, 16](3.0, interface_of(x, typestr="<i4"), y, 16)
    with pytest.raises(kw.ArgumentError, match="read-only"):
        saxpy[1, 16](3.0, x, interface_of(y, data=(y.ptr, True)), 16)
    saxpy[1, 16](3.0, interface_of(x, data=(x.ptr, True)), y, 16)


def test_the_interface_keeps_its_owner_alive():
    x = kw.ones(4)
    owner = interface_of(x)
    alive = weakref.ref(owner)
    view = kw.asarray(owner)
    del owner, x
    gc.collect()
    assert alive() is not None and (view.numpy() == 1).all()
    del view
    gc.collect()
    assert alive() is None


def test_an_interface_to_foreign_memory_is_refused(saxpy):
    x = np.ones(16, np.float32)
    wild = interface_of(kw.ones(16), data=(x.ctypes.data, False))
    with pytest.raises(kw.ArgumentError, match="another device"):
        saxpy[1, 16](1.0, wild, kw.zeros(16), 16)


def test_producers_on_another_stream_are_waited_for(saxpy):
    stream = kw.Stream()
    x, y = kw.ones(1 << 16), kw.zeros(1 << 16)
    x.device.synchronize()
    for _ in range(10):
        saxpy[256, 256, stream](1.0, x, x, 1 << 16)
    saxpy[256, 256](1.0, interface_of(x, stream=stream.handle), y, 1 << 16)
    assert (y.numpy() == 1024).all()


def test_our_interface(device):
    x = kw.ones((3, 4), "float64")
    if device.is_simulated:
        assert not hasattr(x, "__cuda_array_interface__")
        with pytest.raises(AttributeError, match="simulated"):
            x.__cuda_array_interface__
        return
    interface = x.__cuda_array_interface__
    assert interface["version"] == 3 and interface["shape"] == (3, 4)
    assert interface["typestr"] == "<f8" and interface["data"] == (x.ptr, False)
    assert interface["strides"] is None and x.T.__cuda_array_interface__["strides"] == (8, 32)
    assert not hasattr(kw.ones(2, "bfloat16"), "__cuda_array_interface__")


def test_dlpack_device(device):
    kind, index = kw.ones(1).__dlpack_device__()
    assert kind == (12 if device.is_simulated else 2) and index == device.ordinal
