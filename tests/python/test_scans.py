"""Running sums, products and extremes along an axis against NumPy in float64."""

import numpy as np
import pytest

import kernwright as kw

RNG = np.random.default_rng(21)


def close(got, wanted, tolerance=1e-6):
    values = got.numpy()
    assert values.shape == wanted.shape
    scale = np.abs(wanted).max() if wanted.size else 1
    np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance * scale)


def with_initial(sums, axis):
    return np.concatenate([np.zeros_like(np.take(sums, [0], axis)), sums], axis)


# Threads, warps, several chunks of a warp, tiles of each size; then each place of the axis.
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *(((n,), 0) for n in (1, 5, 17, 1023, 1024, 2049, 3001, 16385, 150_003)),
        *(((n,), 0) for n in (300_001, 600_000, 1_500_003)),
        ((7, 300), 1), ((7, 300), 0), ((3, 5000), -1), ((5000, 3), 0), ((4, 6, 33), 1),
        ((20_000, 8), 0), ((400, 3), 1), ((2, 33_000), 1),
    ],
)  # fmt: skip
def test_sums_of_every_shape(shape, axis):
    values = RNG.standard_normal(shape).astype(np.float32)
    x, wanted = kw.asarray(values), np.cumsum(values.astype(np.float64), axis)
    close(kw.cumulative_sum(x, axis=axis), wanted)
    longer = kw.cumulative_sum(x, axis=axis, include_initial=True)
    close(longer, with_initial(wanted, axis))


# More tiles than a block has threads look back; 16 bytes make tiles of 4096 elements.
def test_rows_of_many_tiles():
    values = RNG.integers(-9, 9, (2, 2_097_153)) + 1j * RNG.integers(-9, 9, (2, 2_097_153))
    got = kw.cumulative_sum(kw.asarray(values), axis=1, include_initial=True)
    np.testing.assert_array_equal(got.numpy(), with_initial(np.cumsum(values, 1), 1))


# Elements of 4 and 8 bytes come to shared memory, three tiles of a block at a time.
def test_rows_of_many_tiles_in_packs():
    values = RNG.integers(-9, 9, (2, 4_200_002)).astype(np.float64)
    got = kw.cumulative_sum(kw.asarray(values), axis=1, include_initial=True)
    np.testing.assert_array_equal(got.numpy(), with_initial(np.cumsum(values, 1), 1))


@pytest.mark.parametrize(("dtype", "to"), [("int32", "int32"), ("float32", "uint32")])
def test_rows_of_many_tiles_whose_sums_are_wider(dtype, to):
    values = RNG.integers(0, 9, 8_400_003)
    got = kw.cumulative_sum(kw.asarray(values.astype(dtype)), dtype=to)
    np.testing.assert_array_equal(got.numpy(), np.cumsum(values, dtype=to))


def test_rows_of_a_few_tiles_side_by_side():
    values = RNG.integers(-9, 9, (40, 20_000))
    for dtype in ("float32", "int16", "uint8", "complex64", "float64"):
        host = np.abs(values).astype(dtype) if dtype == "uint8" else values.astype(dtype)
        got = kw.cumulative_sum(kw.asarray(host), axis=1)
        np.testing.assert_array_equal(got.numpy(), np.cumsum(host, 1, dtype=got.dtype))
    lowest = kw.cumulative_min(kw.asarray(values.astype(np.int8)), axis=1)
    np.testing.assert_array_equal(lowest.numpy(), np.minimum.accumulate(values, 1))


def test_the_sign_of_zero_is_that_of_the_last_one_of_equals():
    values = np.zeros(40_000, np.float32)
    values[RNG.integers(0, 40_000, 9000)] = -0.0
    for scan, ufunc in ((kw.cumulative_max, np.maximum), (kw.cumulative_min, np.minimum)):
        got = scan(kw.asarray(values)).numpy()
        np.testing.assert_array_equal(got, ufunc.accumulate(values))
        np.testing.assert_array_equal(np.signbit(got[1:]), np.signbit(values[1:]))


VIEWS = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "misaligned": lambda a: a[:, 1:],
    "stepped": lambda a: a[:, ::3],
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_where_they_are(view):
    values = RNG.standard_normal((60, 71)).astype(np.float32)
    x, seen = VIEWS[view](kw.asarray(values)), VIEWS[view](values)
    for axis in (0, 1):
        got = kw.cumulative_max(x, axis=axis).numpy()
        np.testing.assert_array_equal(got, np.maximum.accumulate(seen, axis))


def test_many_axes():
    values = np.arange(2**12, dtype=np.float32).reshape((2,) * 12)
    x = kw.asarray(values).transpose(*range(0, 12, 2), *range(11, 0, -2))
    seen = values.transpose(*range(0, 12, 2), *range(11, 0, -2))
    got = kw.cumulative_sum(x, axis=3, include_initial=True).numpy()
    np.testing.assert_array_equal(got, with_initial(np.cumsum(seen, 3), 3))


def test_dtypes():
    small = RNG.integers(-100, 100, 50_000).astype(np.int8)
    sums = kw.cumulative_sum(kw.asarray(small))
    assert sums.dtype == np.int64
    np.testing.assert_array_equal(sums.numpy(), np.cumsum(small, dtype=np.int64))
    lowest = kw.cumulative_min(kw.asarray(small))
    assert lowest.dtype == np.int8
    np.testing.assert_array_equal(lowest.numpy(), np.minimum.accumulate(small))
    flags = small > 0
    np.testing.assert_array_equal(kw.cumulative_sum(kw.asarray(flags)).numpy(), np.cumsum(flags))
    wrapped = kw.cumulative_sum(kw.asarray(small), dtype="int16")
    np.testing.assert_array_equal(wrapped.numpy(), np.cumsum(small, dtype=np.int16))
    phases = np.exp(1j * RNG.standard_normal(20_000)).astype(np.complex64)
    close(kw.cumulative_prod(kw.asarray(phases)), np.cumprod(phases.astype(np.complex128)), 1e-4)
    halves = RNG.random(3000).astype(np.float16)
    got = kw.cumulative_sum(kw.asarray(halves))
    assert got.dtype == np.float16
    close(got, np.cumsum(halves.astype(np.float64)), 1e-3)
    wide = RNG.standard_normal((3, 4000))
    close(kw.cumulative_prod(kw.asarray(wide), axis=1), np.cumprod(wide, 1), 1e-13)


def test_long_sums_lose_few_digits_and_have_the_same_bits():
    tenth = np.full(1_000_003, 0.1, np.float32)
    x = kw.asarray(tenth)
    got = [kw.cumulative_sum(x).numpy() for _ in range(3)]
    np.testing.assert_allclose(got[0], np.cumsum(tenth.astype(np.float64)), rtol=3e-7)
    assert len({each.tobytes() for each in got}) == 1


def test_nan_stays():
    values = np.array([1, 3, np.nan, 2, np.inf], np.float32)
    x = kw.asarray(values)
    got = kw.cumulative_max(x).numpy()
    np.testing.assert_array_equal(got, [1, 3, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(kw.cumulative_sum(x).numpy(), np.cumsum(values))


def test_methods_are_those_of_numpy():
    values = RNG.integers(1, 3, (4, 30)).astype(np.int32)
    x = kw.asarray(values)
    np.testing.assert_array_equal(x.cumsum().numpy(), values.cumsum())
    np.testing.assert_array_equal(x.T.cumsum().numpy(), values.T.cumsum())
    np.testing.assert_array_equal(x.cumprod(1).numpy(), values.cumprod(1))
    out = kw.zeros((4, 60), "int64")[:, ::2]
    assert x.cumsum(1, out=out) is out
    np.testing.assert_array_equal(out.numpy(), values.cumsum(1))
    line = kw.asarray(values.astype(np.int64))[0]
    line.cumsum(out=line)  # in place
    np.testing.assert_array_equal(line.numpy(), values[0].cumsum())


def test_scans_of_nothing():
    assert kw.cumulative_sum(kw.zeros((0,))).shape == (0,)
    assert kw.cumulative_sum(kw.zeros((3, 0)), axis=1, include_initial=True).numpy().tolist() == [
        [0], [0], [0],
    ]  # fmt: skip
    assert kw.cumulative_prod(kw.zeros((0, 2)), axis=0, include_initial=True).numpy().tolist() == [
        [1, 1]
    ]
    assert kw.cumulative_max(kw.zeros((0, 3)), axis=1).shape == (0, 3)
    # Of more axes than a kernel walks, in an order that is not that of the result.
    many = kw.zeros((2,) * 6 + (0,)).transpose((6, 5, 4, 3, 2, 1, 0))
    got = kw.cumulative_prod(many, axis=0, include_initial=True)
    assert np.array_equal(got.numpy(), np.ones((1,) + (2,) * 6))


def test_wrong_calls():
    x = kw.zeros((2, 3))
    with pytest.raises(kw.InvalidArgument, match="name the axis"):
        kw.cumulative_sum(x)
    with pytest.raises(kw.InvalidArgument, match="axis"):
        kw.cumulative_sum(x, axis=2)
    with pytest.raises(kw.ArgumentError, match="one axis"):
        kw.cumulative_sum(x, axis=(0, 1))
    with pytest.raises(kw.InvalidArgument, match="no order"):
        kw.cumulative_max(kw.zeros((3,), "complex64"))
    with pytest.raises(kw.InvalidArgument, match="as bool"):
        kw.cumulative_sum(x, axis=0, dtype=bool)
    with pytest.raises(kw.InvalidArgument, match="does not go into"):
        kw.cumulative_sum(x, axis=0, out=kw.zeros((3, 2)))
    with pytest.raises(kw.InvalidArgument, match="without dimensions"):
        kw.cumulative_sum(kw.zeros(()), axis=0)
    with pytest.raises(kw.ArgumentError, match=r"kernwright\.asarray"):
        kw.cumulative_sum([1, 2])


def test_every_kernel_under_all_checks():
    line = RNG.standard_normal(40_000).astype(np.float32)
    with kw.checks("memory", "init", "race", "sync") as report:
        x = kw.asarray(line)
        for shape, axis in (((40_000,), 0), ((40, 1000), 1), ((5000, 8), 0)):
            kw.cumulative_sum(x.reshape(shape), axis=axis, include_initial=True)
        kw.cumulative_max(x.reshape(4, 10_000), axis=1)
        kw.cumulative_sum(kw.ones(2_100_000, "complex128"))
        kw.synchronize()
    assert not report.findings, str(report)


def test_blocks_in_any_order_give_the_same_bits():
    line = RNG.standard_normal(40_000).astype(np.float32)

    def run():
        x = kw.asarray(line)
        rows = x.reshape(4, 10_000)
        return (
            kw.cumulative_sum(x),
            kw.cumulative_sum(rows, axis=1),
            kw.sum(x),
            kw.sum(rows, axis=1),
        )

    assert kw.checks.fuzz(run, 6) is None


def test_a_graph_replays_a_scan():
    values = RNG.standard_normal(40_000).astype(np.float32)
    x, out = kw.asarray(values), kw.zeros((40_000,))
    stream, graph = kw.Stream(), kw.Graph()
    x.cumsum()
    with graph.capture(stream):
        x.cumsum(out=out)
    for factor in (2, 3):
        x[:] = kw.asarray(np.float32(factor) * values)
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        close(out, np.cumsum((np.float32(factor) * values).astype(np.float64)))


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("axis", "n"), [(-1, 1), (0, 2), (1, 0), (1, 9)])
def test_differences(dtype, axis, n):
    values = np.random.default_rng(3).integers(0, 5, (4, 6)).astype(dtype)
    got = kw.diff(kw.asarray(values), axis=axis, n=n)
    np.testing.assert_array_equal(got.numpy(), np.diff(values, axis=axis, n=n))
    ends = values[:, :1] if axis else values[:1]
    got = kw.diff(kw.asarray(values), axis=axis, prepend=kw.asarray(ends), append=kw.asarray(ends))
    np.testing.assert_array_equal(
        got.numpy(), np.diff(values, axis=axis, prepend=ends, append=ends)
    )


def test_differences_refuse():
    with pytest.raises(kw.InvalidArgument, match="n must be at least 0, got -1"):
        kw.diff(kw.ones(3), n=-1)
    with pytest.raises((kw.InvalidArgument, IndexError)):
        kw.diff(kw.ones(()))


def test_the_functions_of_numpy():
    values = np.arange(1, 7).reshape(2, 3)
    x = kw.asarray(values)
    for ours, numpys in ((kw.cumsum, np.cumsum), (kw.cumprod, np.cumprod)):
        for view, host in ((x, values), (x.T, values.T)):
            np.testing.assert_array_equal(ours(view).numpy(), numpys(host))
            np.testing.assert_array_equal(ours(view, 1).numpy(), numpys(host, 1))
        got = ours(x, axis=-1, dtype="float32", out=kw.empty((2, 3), "float32"))
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got.numpy(), numpys(values, -1))
