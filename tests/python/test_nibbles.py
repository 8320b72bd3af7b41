"""Integers of 4 bits, two in a byte: against ml_dtypes' int4 and uint4."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw

quant = kw.nn.quant


def packed_as_defined(x):
    half = x.astype(np.int64) & 15
    if x.shape[-1] % 2:
        half = np.concatenate([half, np.zeros((*x.shape[:-1], 1), np.int64)], axis=-1)
    return (half[..., ::2] | half[..., 1::2] << 4).astype(np.uint8)


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (16,), (4096,), (3, 5), (9, 70), (2, 3, 32),
                                   (0, 4), (3, 0), (5, 1), (1, 1001)])  # fmt: skip
@pytest.mark.parametrize("signed", [True, False])
def test_packs_and_unpacks(shape, signed):
    low, high = (-8, 8) if signed else (0, 16)
    x = np.random.default_rng(1).integers(low, high, shape).astype("int8" if signed else "uint8")
    packed = quant.pack_int4(kw.asarray(x))
    assert packed.dtype == np.uint8
    np.testing.assert_array_equal(packed.numpy(), packed_as_defined(x))
    back = quant.unpack_int4(packed, signed=signed, length=shape[-1])
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back.numpy(), x)


def test_every_byte_both_ways():
    every = np.arange(256, dtype=np.uint8)
    for signed, kind in ((True, ml_dtypes.int4), (False, ml_dtypes.uint4)):
        got = quant.unpack_int4(kw.asarray(every), signed=signed).numpy()
        halves = np.stack([every & 15, every >> 4], axis=-1).reshape(-1)
        np.testing.assert_array_equal(got, halves.astype(kind).astype(got.dtype))
        np.testing.assert_array_equal(quant.pack_int4(kw.asarray(got)).numpy(), every)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_other_numbers_wrap_around(dtype):
    x = np.random.default_rng(2).integers(0, 2**31, (3, 33)).astype(dtype)
    got = quant.unpack_int4(quant.pack_int4(kw.asarray(x)), length=33).numpy()
    np.testing.assert_array_equal(got, x.astype(np.int8).astype(ml_dtypes.int4).astype(np.int8))


def test_views():
    x = np.random.default_rng(3).integers(-8, 8, (12, 34)).astype(np.int8)
    a = kw.asarray(x)
    for view, expected in ((a[::2, ::-1], x[::2, ::-1]), (a.T, x.T), (a[:, 1:], x[:, 1:])):
        packed = quant.pack_int4(view)
        np.testing.assert_array_equal(packed.numpy(), packed_as_defined(expected))
    bytes_of = kw.asarray(np.arange(49, dtype=np.uint8))
    odd = quant.unpack_int4(bytes_of[1:], signed=False).numpy()
    np.testing.assert_array_equal(odd[::2], np.arange(1, 49) & 15)


def test_wrong_calls():
    for call, words in (
        (lambda: quant.pack_int4(kw.ones(4)), "integers"),
        (lambda: quant.pack_int4(kw.ones((), "int8")), "axis"),
        (lambda: quant.pack_int4(kw.ones(4, "bool")), "integers"),
        (lambda: quant.pack_int4([1, 2]), "asarray"),
        (lambda: quant.unpack_int4(kw.ones(4, "int8")), "uint8"),
        (lambda: quant.unpack_int4(kw.ones(4, "uint8"), length=6), "7 or 8"),
        (lambda: quant.unpack_int4(kw.ones(4, "uint8"), length=-1), "length"),
        (lambda: quant.unpack_int4(kw.ones(4, "uint8"), length=7.5), "length"),
    ):
        with pytest.raises(kw.Error, match=words):
            call()


def test_checks_and_a_graph(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for n in (7, 64):
            packed = quant.pack_int4(kw.ones((3, n), "int8"))
            quant.unpack_int4(packed, length=n)
            quant.unpack_int4(packed, signed=False)
    report.raise_if_any()
    x = kw.zeros((4, 64), "int8")
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        got = quant.unpack_int4(quant.pack_int4(x))
    x[...] = 5
    kw.current_device().synchronize()
    graph.launch(stream)
    stream.synchronize()
    assert (got.numpy() == 5).all()


@pytest.mark.parametrize("dtype", ["int4", "uint4", ml_dtypes.int4])
def test_no_array_has_elements_of_4_bits(dtype):
    with pytest.raises(kw.errors.ArgumentError, match="pack_int4"):
        kw.zeros(3, dtype=dtype)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_values_of_4_bits_name_the_way_to_their_bytes(dtype):
    values = np.array([1, 3, 7], dtype)
    for given in (values, values[1], [values[2]]):
        with pytest.raises(kw.errors.ArgumentError, match="pack_int4") as caught:
            kw.asarray(given)
    advised = str(caught.value).rpartition("lie two in a byte: ")[2]
    packed = eval(advised, {"kw": kw, "values": values})
    np.testing.assert_array_equal(packed.numpy(), packed_as_defined(values))


def test_other_names_are_no_integers_of_4_bits():
    for dtype in ("int4x", np.dtype([("int4", "f4")])):
        with pytest.raises(kw.errors.ArgumentError, match="no element type") as caught:
            kw.zeros(3, dtype=dtype)
        assert "pack_int4" not in str(caught.value)
    with pytest.raises(kw.errors.ArgumentError, match="numbers and bools") as caught:
        kw.asarray(np.array([1, 2], "M8[s]"))
    assert "pack_int4" not in str(caught.value)
