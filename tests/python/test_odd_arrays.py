"""Arrays of other libraries whose protocols say something wrong, or raise."""

import numpy as np
import pytest

import kernwright as kw


@pytest.fixture(scope="module")
def total():
    return kw.kernel("""
        __global__ void total(const float* x, float* out) {
            out[0] = x[0] + x[1] + x[2] + x[3];
        }""")


class Interface:
    """An array that knows __cuda_array_interface__; fields may be replaced or taken away."""

    def __init__(self, array, without=(), **fields):
        self.array = array
        whole = {"shape": (4,), "typestr": "<f4", "data": (array.ptr, False), "version": 3}
        whole |= fields
        self.__cuda_array_interface__ = {k: v for k, v in whole.items() if k not in without}


def test_a_right_interface_is_taken(total):
    x, out = kw.ones(4), kw.zeros(1)
    for fields in (
        {},
        {"version": 0},
        {"version": 99},
        {"mask": None, "stream": None, "strides": None},
        {"strides": (4,), "descr": [("", "<f4")], "stream": 1},
        {"shape": [4], "version": 2},
        {"shape": (np.int64(2), 2), "data": (np.uint64(x.ptr), 0)},
    ):
        out[...] = 0
        total[1, 1](Interface(x, **fields), out)
        assert out.item() == 4
        assert kw.asarray(Interface(x, **fields)).ptr == x.ptr
    assert kw.asarray(Interface(x, shape=(0,), data=(0, False))).shape == (0,)
    assert kw.asarray(Interface(x, typestr="|V16", shape=(1,))).shape == (1, 16)


WRONG = {
    "mask": {"mask": object()},
    "shape is a number": {"shape": 4},
    "shape is None": {"shape": None},
    "shape of text": {"shape": "4"},
    "shape of floats": {"shape": (4.0,)},
    "shape of bools": {"shape": (True,)},
    "negative shape": {"shape": (-4,)},
    "huge shape": {"shape": (2**62, 2**62)},
    "shape beyond 64 bits": {"shape": (2**80,)},
    "data is None": {"data": None},
    "data is a number": {"data": 4096},
    "address is None": {"data": (None, False)},
    "address is text": {"data": ("x", False)},
    "address is negative": {"data": (-4096, False)},
    "address beyond 64 bits": {"data": (2**64, False)},
    "null address": {"data": (0, False)},
    "data of three": {"data": (1, 2, 3)},
    "stream is text": {"stream": "x"},
    "stream is 0": {"stream": 0},
    "stream is negative": {"stream": -1},
    "stream beyond 64 bits": {"stream": 2**70},
    "typestr is nonsense": {"typestr": "nonsense"},
    "typestr is None": {"typestr": None},
    "typestr is bytes": {"typestr": b"<f4"},
    "big endian": {"typestr": ">f4"},
    "objects": {"typestr": "|O"},
    "strides of another rank": {"strides": (4, 4)},
    "strides of text": {"strides": ("x",)},
    "strides are a number": {"strides": 4},
    "huge strides": {"strides": (2**62,)},
    "strides beyond 64 bits": {"strides": (2**64,)},
    "version is text": {"version": "3"},
    "version is negative": {"version": -1},
}
WRONG |= {f"no {name}": {"without": (name,)} for name in ("shape", "typestr", "data", "version")}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_interface_is_refused(total, name):
    x, out = kw.ones(4), kw.zeros(1)
    odd = Interface(x, **WRONG[name])
    with pytest.raises(kw.ArgumentError, match=r"parameter 1 \(const float\*\)"):
        total[1, 1](odd, out)
    for taker in (kw.asarray, lambda odd: kw.CudaArray((4,)).set(odd)):
        with pytest.raises(kw.Error):
            taker(odd)
    assert out.item() == 0


@pytest.mark.parametrize("changes", [{"at": 1}, {"at": 2}, {"strides": (6,)}, {"strides": (-5,)}])
def test_elements_that_are_not_aligned_are_refused(total, changes):
    x = kw.ones(16)
    fields = {"data": (x.ptr + 32 + changes.get("at", 0), False), "shape": (4,)}
    odd = Interface(x, **fields | {k: v for k, v in changes.items() if k != "at"})
    for call in (kw.asarray, kw.exp, kw.sort, kw.nn.softmax, lambda odd: kw.ones(4) + odd):
        with pytest.raises(kw.InvalidArgument, match="must be multiples of 4 bytes: copy it"):
            call(odd)
    with pytest.raises(kw.ArgumentError, match=r"parameter 1 .*must be multiples of 4 bytes"):
        total[1, 1](odd, kw.zeros(1))
    assert kw.exp(kw.asarray(Interface(x, shape=(0,), strides=(7,)))).shape == (0,)


def test_complex_views_are_aligned_as_kernels_read_them():
    x = kw.ones(10)
    assert kw.abs(x[2:].view("complex64")).shape == (4,)
    with pytest.raises(kw.InvalidArgument, match="multiples of 8 bytes; view a copy"):
        x[1:9].view("complex64")
    assert kw.abs(x[1:9].copy().view("complex64")).shape == (4,)
    one = kw.ones(9)[None, :8].view("complex64")
    assert one.shape == (1, 4) and kw.abs(one).numpy().tolist() == [[np.float32(2**0.5)] * 4]


@pytest.mark.parametrize("interface", [None, 3, "text", [("shape", (4,))], object()])
def test_an_interface_that_is_no_dict_is_refused(total, interface):
    class Odd:
        __cuda_array_interface__ = interface

    with pytest.raises(kw.ArgumentError, match="not a dict"):
        total[1, 1](Odd(), kw.zeros(1))


@pytest.mark.parametrize("error", [RuntimeError, TypeError, ValueError, KeyError, MemoryError])
@pytest.mark.parametrize(
    "name", ["__cuda_array_interface__", "__dlpack__", "__dlpack_device__", "__cuda_stream__"]
)
def test_what_a_property_raises_is_passed_on(total, name, error):
    def get(self):
        raise error("call detach() first")

    fields = {"__dlpack__": None, "__dlpack_device__": lambda self: (1, 0)}
    odd = type("Odd", (), (fields if "dlpack" in name else {}) | {name: property(get)})()
    calls = [lambda: total[1, 1](odd, kw.zeros(1)), lambda: kw.asarray(odd)]
    if name == "__cuda_stream__":
        calls = [lambda: kw.zeros(1).record_stream(odd), lambda: kw.Stream.borrow(odd)]
    for call in calls:
        with pytest.raises(error, match="call detach") as raised:
            call()
        assert type(raised.value) is error


def test_a_property_that_is_absent_is_no_array(total):
    class Absent:
        @property
        def __cuda_array_interface__(self):
            raise AttributeError("not for this one")

    with pytest.raises(kw.ArgumentError, match="wants an array"):
        total[1, 1](Absent(), kw.zeros(1))


class Tensor:
    """An array that knows DLPack, with a place and a capsule of one's own."""

    def __init__(self, array, place=None, capsule=None):
        self.array, self.place, self.capsule = array, place, capsule

    def __dlpack_device__(self):
        return self.array.__dlpack_device__() if self.place is None else self.place

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options) if self.capsule is None else self.capsule


@pytest.mark.parametrize("place", [None, 3, "ab", (1,), (1, 2, 3), ("a", 0), (2.0, 0), [2, 0]])
def test_a_wrong_place_is_refused(total, place):
    odd = Tensor(kw.ones(4), place=3 if place is None else place)
    with pytest.raises(kw.ArgumentError, match="__dlpack_device__"):
        total[1, 1](odd, kw.zeros(1))
    with pytest.raises(kw.ArgumentError, match="__dlpack_device__"):
        kw.from_dlpack(odd)


@pytest.mark.parametrize("place", [(2, 99), (3, 0), (8, 0), (2**31, 0), (-1, -1)])
def test_another_place_is_refused(total, place):
    with pytest.raises(kw.Error):
        total[1, 1](Tensor(kw.ones(4), place=place), kw.zeros(1))


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_is_taken_once(total, versioned):
    x, out = kw.ones(4), kw.zeros(1)
    capsule = x.__dlpack__(max_version=(1, 0) if versioned else None)
    odd = Tensor(x, capsule=capsule)
    total[1, 1](odd, out)
    assert out.item() == 4
    with pytest.raises(kw.ArgumentError, match="used already"):
        total[1, 1](odd, out)
    with pytest.raises(kw.ArgumentError, match="used already"):
        kw.from_dlpack(odd)


@pytest.mark.parametrize("capsule", [3, "text", object(), [], np.ones(4).__dlpack__])
def test_what_is_no_capsule_is_refused(total, capsule):
    with pytest.raises(kw.ArgumentError, match="capsule"):
        total[1, 1](Tensor(kw.ones(4), capsule=capsule), kw.zeros(1))


def test_host_memory_that_claims_to_be_on_a_device_is_refused(total):
    odd = Tensor(kw.ones(4), capsule=np.ones(4, "f4").__dlpack__())
    with pytest.raises(kw.ArgumentError, match="host memory"):
        total[1, 1](odd, kw.zeros(1))


def test_masks_of_numpy_are_refused():
    masked = np.ma.masked_array(np.zeros(4, "f4"), [1, 0, 0, 0])
    x = kw.zeros(4)
    for call in (
        lambda: kw.In(masked),
        lambda: kw.Out(masked),
        lambda: kw.InOut(masked),
        lambda: kw.asarray(masked),
        lambda: x.__setitem__(slice(None), masked),
    ):
        with pytest.raises(kw.ArgumentError, match="mask"):
            call()
    assert kw.asarray(np.ma.masked_array(np.ones(4, "f4"))).numpy().tolist() == [1] * 4
    kw.In(np.ma.masked_array(np.ones(4, "f4"), False))
