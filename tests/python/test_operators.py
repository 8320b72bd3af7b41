"""Operators of arrays: the slots of the type, numbers on either side, in place, other libraries."""

import operator

import numpy as np
import pytest

import kernwright as kw

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
]
BITS = [operator.and_, operator.or_, operator.xor]
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def pair(dtype):
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=(5, 7)).astype(dtype), rng.normal(size=7).astype(dtype)
    return rng.integers(1, 90, (5, 7)).astype(dtype), rng.integers(1, 7, 7).astype(dtype)


def same(got, expected, rtol=1e-6):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_against_numpy(dtype):
    x, y = pair(dtype)
    a, b = kw.asarray(x), kw.asarray(y)
    for op in [*BINARY, *COMPARE, *(BITS if dtype == "int32" else [])]:
        same(op(a, b), op(x, y))
    for op in (operator.sub, operator.truediv, operator.lt):
        same(op(a, 3), op(x, 3))
        same(op(3, a), op(3, x))
    for op in (operator.neg, operator.pos, abs):
        same(op(a), op(x))
    same(a**2, x**2)
    same(2**b, 2**y)
    for got, expected in zip(divmod(a, b), divmod(x, y), strict=True):
        same(got, expected)
    same(divmod(9, b)[1], divmod(9, y)[1])


def test_bits():
    x = np.array([1, 2, 250], "u1")
    a = kw.asarray(x)
    same(a << 1, x << 1)
    same(a >> 1, x >> 1)
    same(1 << a, 1 << x)
    same(~a, ~x)
    same(~(a > 1), ~(x > 1))
    same((a > 1) | (a == 1), np.ones(3, bool))
    same((a > 1) ^ True, x <= 1)


@pytest.mark.parametrize("op", [operator.iadd, operator.isub, operator.imul, operator.itruediv,
                                operator.ifloordiv, operator.imod, operator.ipow])  # fmt: skip
def test_in_place(op):
    for dtype in ("float32", "int32"):
        if dtype == "int32" and op is operator.itruediv:
            continue
        x, y = pair(dtype)
        x = abs(x)
        a, b = kw.asarray(x), kw.asarray(y)
        address, view = a.ptr, a[1:]
        expected = op(x.copy(), y)
        result = op(a, b)
        assert result is a and a.ptr == address
        same(a, expected, 1e-5)
        same(view, expected[1:], 1e-5)
        same(op(a, 2), op(expected, 2), 1e-5)


def test_in_place_bits():
    x = np.arange(8, dtype="i4")
    a = kw.asarray(x)
    for op in (operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift):
        same(op(a, 3), op(x, 3))


def test_in_place_rules():
    a = kw.ones((3, 4), "i4")
    with pytest.raises(kw.ArgumentError, match=r"float64.*int32"):
        a /= 2
    with pytest.raises(TypeError):
        a += 1.5
    a += np.int64(4)  # the same kind
    assert a.dtype == np.int32 and (a.numpy() == 5).all()
    with pytest.raises(kw.InvalidArgument, match=r"\(2, 3, 4\).*\(3, 4\)"):
        a += kw.ones((2, 3, 4), "i4")
    with pytest.raises(TypeError):
        a += "text"
    half = kw.ones(4, "f2")
    half *= kw.full(4, 3.0, "f4")
    assert half.dtype == np.float16 and (half.numpy() == 3).all()
    view = kw.asarray(np.arange(6.0))
    view[::2] += 10
    view[:3] -= view[3:]
    np.testing.assert_array_equal(view.numpy(), [10 - 3, 1 - 14, 12 - 5, 3, 14, 5])


def test_overlap_in_place():
    x = np.arange(9, dtype="i8")
    a = kw.asarray(x)
    a[1:] += a[:-1]
    expected = x.copy()
    expected[1:] += x[:-1]
    np.testing.assert_array_equal(a.numpy(), expected)
    a += a[::-1]
    np.testing.assert_array_equal(a.numpy(), expected + expected[::-1])


def test_comparisons_of_integers_are_exact():
    signed = np.array([-1, 0, 2**53 + 1, 2**63 - 1])
    unsigned = np.array([2**64 - 1, 0, 2**53, 2**63], "u8")
    a, b = kw.asarray(signed), kw.asarray(unsigned)
    for op in COMPARE:
        same(op(a, b), op(signed, unsigned))
        same(op(b, a), op(unsigned, signed))
    for op in (operator.eq, operator.lt):
        for number in (2**70, -(2**70), 2**63, -1):
            same(op(a, number), op(signed, number))
            same(op(b, number), op(unsigned, number))


@pytest.mark.parametrize("other", [None, "text", object(), {}])
def test_unknown_kinds(other):
    a = kw.ones(3)
    assert (a == other) is False and (a != other) is True
    for op in [*BINARY, *BITS, operator.lt, operator.lshift, pow, divmod]:
        with pytest.raises(TypeError):
            op(a, other)
        if not isinstance(other, str) or op is not operator.mod:
            with pytest.raises(TypeError):
                op(other, a)


@pytest.mark.parametrize("other", [[1, 1, 1], (1, 1, 1), [], [1, [2]]])
def test_lists_are_not_compared_by_identity(other):
    a = kw.ones(3)
    for op in [operator.eq, operator.ne, operator.lt, operator.add, operator.and_]:
        for sides in ((a, other), (other, a)):
            with pytest.raises(
                kw.ArgumentError, match=r"a (list|tuple) cannot be an operand.*asarray"
            ):
                op(*sides)
    with pytest.raises(kw.ArgumentError):
        a += other


class Mirror:
    def __radd__(self, other):
        return "radd"

    def __eq__(self, other):
        return "eq"

    def __gt__(self, other):
        return "gt"


def test_other_classes_get_their_turn():
    a = kw.ones(3)
    assert a + Mirror() == "radd"
    assert (a == Mirror()) == "eq" and (a < Mirror()) == "gt"


@pytest.mark.parametrize("op", [operator.add, operator.eq, operator.lt])
def test_arrays_of_the_host_are_refused(op):
    a = kw.ones(3)
    for host in (np.ones(3), np.ones(())):
        with pytest.raises(kw.ArgumentError, match="asarray"):
            op(a, host)
        with pytest.raises(kw.ArgumentError, match="asarray"):
            op(host, a)


def test_numpy_scalars_have_a_type():
    a = kw.ones(3, "f4")
    assert (a + np.float64(1)).dtype == (np.float64(1) + a).dtype == np.float64
    assert (a + np.float16(1)).dtype == np.float32
    assert (np.int64(2) * a).dtype == np.float64
    assert (a > np.int8(0)).numpy().all()
    assert (a + np.bool_(True)).numpy().tolist() == [2, 2, 2]


def test_methods_by_name_and_subclasses():
    a = kw.ones(3)
    assert a.__add__(1).numpy().tolist() == a.__radd__(1).numpy().tolist() == [2, 2, 2]
    assert a.__rsub__(3).numpy().tolist() == [2, 2, 2]
    assert a.__eq__("text") is NotImplemented and a.__iadd__(1) is a
    assert operator.pow(a, 2).dtype == a.dtype
    with pytest.raises(TypeError):
        pow(a, 2, 3)
    with pytest.raises(TypeError):
        hash(a)
    assert operator.contains(a, 2.0) and not a.__contains__("text")


def test_read_only_and_devices():
    other = kw.ones(3)
    assert (other + other.to(other.device)).numpy().tolist() == [2, 2, 2]
    assert bool(kw.ones(()) == 1) and float(kw.ones(()) + 1) == 2


def test_empty_arrays():
    a = kw.empty((0, 3))
    assert (a + 1).shape == (0, 3) and (a == a).dtype == np.bool_
    a += 1
    assert (a + kw.ones((1, 3))).shape == (0, 3)
    assert (a[:, :0] + kw.ones(1)).shape == (0, 0)


def test_streams(device):
    stream = kw.Stream()
    a = kw.ones(1000)
    device.synchronize()
    with stream:
        b = (a + 1) * 2 - a
    stream.synchronize()
    assert (b.numpy() == 3).all()


def test_a_dlpack_array_is_an_operand(device):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    a, b = kw.ones(3), Foreign(kw.full(3, 2.0))
    assert (a + b).numpy().tolist() == (b + a).numpy().tolist() == [3, 3, 3]
    a *= b
    assert a.numpy().tolist() == [2, 2, 2]
    assert kw.add(b, b).numpy().tolist() == [4, 4, 4]
