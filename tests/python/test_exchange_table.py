"""Arrays with DLPack's C exchange table: read by it, checked like any other argument."""

import ctypes

import pytest

import kernwright as kw


class Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


READ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
STREAM = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class Table(ctypes.Structure):
    pass


Table._fields_ = (
    ("version", Version),
    ("previous", ctypes.POINTER(Table)),
    ("allocate", ctypes.c_void_p),
    ("managed_from", ctypes.c_void_p),
    ("managed_to", ctypes.c_void_p),
    ("read", READ),
    ("stream", STREAM),
)

KINDS = {"float32": (2, 32), "int64": (0, 64), "float64": (2, 64)}
streams_asked_for = []


@READ
def read(lent, out):
    if lent.refuses:  # ctypes lets no exception through
        return -1
    array, tensor = lent.array, out[0]
    kind, index = array.__dlpack_device__()
    tensor.device_type, tensor.device_id = lent.place or (int(kind), int(index))
    # The offset is DLPack's own way to point behind the begin of an allocation.
    tensor.data, tensor.byte_offset = array.ptr - 8, 8
    tensor.ndim = array.ndim
    tensor.code, tensor.bits = KINDS[str(array.dtype)] if lent.known else (17, 4)
    tensor.lanes = 1
    item = array.dtype.itemsize
    lent.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    lent.strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // item for s in array.strides))
    tensor.shape, tensor.strides = lent.shape, lent.strides
    return 0


@STREAM
def stream(kind, index, out):
    streams_asked_for.append((kind, index))
    out[0] = None
    return 0


tables = []  # a table lives as long as the process


def capsule(table, name=b"dlpack_exchange_api"):
    tables.append(table)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.addressof(table), name, None)


TABLE = Table(version=Version(1, 3), read=read, stream=stream)
NEWER = Table(version=Version(2, 0), previous=ctypes.pointer(TABLE))


class Lent:
    """An array with the table alone."""

    __dlpack_c_exchange_api__ = capsule(TABLE)

    def __init__(self, array, place=None, known=True, refuses=False):
        self.array, self.place, self.known, self.refuses = array, place, known, refuses


class LentByANewerLibrary(Lent):
    __dlpack_c_exchange_api__ = capsule(NEWER)


@pytest.mark.parametrize("lender", [Lent, LentByANewerLibrary])
def test_arrays_go_straight_into_a_launch(saxpy, lender):
    x, y = kw.arange(300, dtype="float32"), kw.ones(300)
    streams_asked_for.clear()
    saxpy[2, 256](2.0, lender(x), lender(y), 300)
    assert (y.numpy() == 2 * x.numpy() + 1).all()
    assert len(streams_asked_for) == 2


def test_views_begin_where_they_begin(saxpy):
    x, y = kw.arange(300, dtype="float32"), kw.zeros(300)
    saxpy[1, 256](1.0, Lent(x[100:200]), Lent(y[:100]), 100)
    assert (y.numpy()[:100] == x.numpy()[100:200]).all()
    assert (y.numpy()[100:] == 0).all()


def test_an_empty_array_is_no_array_of_strides(saxpy):
    saxpy[1, 32](1.0, Lent(kw.zeros((0, 3))), Lent(kw.zeros((4, 1, 3)).reshape(4, 1, 3)), 0)


def test_what_does_not_fit_is_refused(saxpy):
    y = kw.zeros(64)
    for lent, words in (
        (Lent(kw.zeros(64, "float64")), "an array of float64"),
        (Lent(kw.zeros((8, 8)).T), "not contiguous"),
        (Lent(y, place=(1, 0)), "host memory"),
        (Lent(y, place=(2, 77)), "cuda:77"),
        (Lent(y, place=(10, 0)), "device type 10"),
        (Lent(y, known=False), "type code 17 with 4 bits"),
        (Lent(y, refuses=True), "cannot be taken: its library gave no reason"),
    ):
        with pytest.raises(kw.ArgumentError, match=words) as caught:
            saxpy[1, 32](1.0, y, lent, 32)
        assert "parameter 3" in str(caught.value)
    saxpy[1, 32](1.0, y, y, 32)


@pytest.mark.parametrize(
    "attribute",
    [
        capsule(TABLE, b"another name"),
        capsule(Table(version=Version(7, 0))),
        capsule(Table(version=Version(1, 3), stream=stream)),
        12345,
    ],
)
def test_tables_that_cannot_be_used_are_not(saxpy, attribute):
    other = type("Other", (), {"__dlpack_c_exchange_api__": attribute})
    with pytest.raises(kw.ArgumentError, match="wants an array"):
        saxpy[1, 32](1.0, other(), kw.zeros(32), 32)
