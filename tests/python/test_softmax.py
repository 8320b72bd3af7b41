"""Softmax and log_softmax, forward and backward, against NumPy in float64."""

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright import nn

DTYPES = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "float64": 1e-14}
# Sizes of every plan: part of a warp, a warp, blocks, odd ones, two launches, shared memory.
LENGTHS = (1, 2, 7, 31, 33, 64, 100, 257, 1023, 1024, 1025, 2052, 4100)


def random(shape, dtype="float32", seed=0, spread=3.0):
    values = np.random.default_rng(seed).normal(size=shape) * spread
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def reference(x, axis=-1, log=False, mask=None, scale=1.0):
    s = np.asarray(x, np.float64) * scale
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask.astype(np.float64)
    with np.errstate(all="ignore"):
        s = s - s.max(axis, keepdims=True)
        total = np.exp(s).sum(axis, keepdims=True)
        return s - np.log(total) if log else np.exp(s) / total


def close(result, expected, tolerance):
    """Element by element, and as a whole."""
    values = np.asarray(result.numpy(), np.float64)
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, rtol=4 * tolerance, atol=tolerance / 4)
    norm = np.linalg.norm(expected)
    assert np.linalg.norm(values - expected) <= tolerance * max(norm, 1e-300)


@pytest.mark.parametrize("n", LENGTHS)
def test_rows(n):
    x = random((5, n))
    close(nn.softmax(kw.asarray(x)), reference(x), 2e-6)
    assert np.abs(nn.softmax(kw.asarray(x)).numpy().sum(-1) - 1).max() < 1e-5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 65), (2, 1536)])
def test_dtypes(dtype, shape):
    x = random(shape, dtype)
    y = nn.softmax(kw.asarray(x))
    assert y.dtype == x.dtype
    close(y, reference(x), DTYPES[dtype])
    close(nn.log_softmax(kw.asarray(x)), reference(x, log=True), DTYPES[dtype])


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((2, 20000), "float32"), ((1, 40001), "float32"), ((80, 33000), "bfloat16")],
)
def test_long_rows(shape, dtype, log):
    """Few and long: two launches. Many and longer than registers hold: shared memory."""
    x = random(shape, dtype)
    function = nn.log_softmax if log else nn.softmax
    close(function(kw.asarray(x)), reference(x, log=log), DTYPES[dtype])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("rows", "n", "first"),
    [(5, 2408, 1), (3, 2409, 0), (9, 1027, 3), (67, 33000, 7), (67, 16387, 1)],
)
def test_equal_rows_have_equal_results_at_any_address(dtype, rows, n, first):
    """Rows begin and end at every place of a unit. Long ones are as aligned ones."""
    row = random(n, dtype)
    x = kw.asarray(np.concatenate([row[:first], np.tile(row, rows)]))[first:].reshape(rows, n)
    for function, log in ((nn.softmax, False), (nn.log_softmax, True)):
        y = function(x, scale=-0.5)
        close(y[:1], reference(row[None], log=log, scale=-0.5), DTYPES[dtype])
        bits = y.numpy().view(np.uint16)
        assert (bits == bits[0]).all()
        aligned = function(kw.asarray(np.tile(row, (rows, 1))), scale=-0.5).numpy()
        assert n < 16384 or (bits == aligned.view(np.uint16)).all()


def test_long_rows_at_any_address_move_units_of_16_bytes():
    x = kw.zeros(67 * 16385 + 1, "bfloat16")[1:].reshape(67, 16385)
    graph, stream = kw.Graph(), kw.Stream()
    with graph.capture(stream):
        nn.softmax(x)
    (name,) = [node.name for node in graph.nodes if node.name]
    assert name.startswith("softmax_kept<BFloat16, BFloat16, 8,")


@pytest.mark.parametrize("axis", [0, 1, -2, -1])
def test_any_axis(axis):
    x = random((5, 19, 35))
    for function, log in ((nn.softmax, False), (nn.log_softmax, True)):
        close(function(kw.asarray(x), axis), reference(x, axis, log), 2e-6)


def test_views():
    x = random((6, 40, 33))
    base = kw.asarray(x)
    for view, same in (
        (base[:, ::2], x[:, ::2]),
        (base[::-1], x[::-1]),
        (base[:, :, ::-1], x[:, :, ::-1]),
        (base[:, :, 1:], x[:, :, 1:]),
        (base[:, :, ::2], x[:, :, ::2]),
        (base.transpose(2, 0, 1), x.transpose(2, 0, 1)),
        (base[2:3], x[2:3]),
        (base[:, :, :1], x[:, :, :1]),
    ):
        close(nn.softmax(view), reference(same), 2e-6)
        close(nn.softmax(view, 0), reference(same, 0), 2e-6)
    flat = kw.asarray(random(1001))
    close(nn.softmax(flat[1:]), reference(flat.numpy()[1:]), 2e-6)
    deep = random((2,) * 11 + (3,))
    swapped = kw.asarray(deep).transpose(10, 8, 6, 4, 2, 0, 9, 7, 5, 3, 1, 11)
    close(nn.softmax(swapped), reference(swapped.numpy()), 2e-6)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5), (2, 0, 3)])
def test_nothing(shape):
    x = kw.zeros(shape)
    for axis in range(len(shape)):
        assert nn.softmax(x, axis).shape == shape
        assert nn.softmax_backward(x, x, axis).shape == shape


MASKS = [((7, 50), bool), ((50,), bool), ((7, 1), bool), ((3, 1, 50), bool), ((7, 50), "float32"),
         ((3, 7, 50), "bfloat16"), ((1, 1, 50), "float64")]  # fmt: skip


@pytest.mark.parametrize(("shape", "dtype"), MASKS)
def test_masks(shape, dtype):
    x, rng = random((3, 7, 50)), np.random.default_rng(5)
    if dtype is bool:
        mask = rng.random(shape) < 0.6
    else:
        mask = random(shape, dtype, 7)
        mask[..., ::4] = -np.inf
    for axis in (-1, 1):
        for log in (False, True):
            result = (nn.log_softmax if log else nn.softmax)(
                kw.asarray(x), axis, mask=kw.asarray(mask), scale=0.3
            )
            expected = reference(x, axis, log, mask, 0.3)
            hidden = np.isnan(expected)
            expected[hidden] = -np.inf if log else 0
            values = result.numpy()
            np.testing.assert_allclose(values, expected, rtol=2e-5, atol=1e-6)


def test_masks_of_long_rows():
    x, mask = random((2, 20000)), np.arange(20000) % 3 > 0
    close(nn.softmax(kw.asarray(x), mask=kw.asarray(mask)), reference(x, mask=mask), 2e-6)
    nothing = np.zeros((2, 20000), bool)
    nothing[1, 19999] = True
    y = nn.softmax(kw.asarray(x), mask=kw.asarray(nothing)).numpy()
    np.testing.assert_array_equal(y, nothing.astype(np.float32))


@pytest.mark.parametrize("n", [6, 2000, 20000])
def test_special_values(n):
    inf, nan = np.inf, np.nan
    x = random((7, n))
    x[0, :] = -inf
    x[1, : n - 1] = -inf
    x[2, 3] = inf
    x[3, 2] = nan
    x[4, ::2] = -inf
    x[5] = 1e-42
    x[6] = np.where(np.arange(n) % 2, 3e38, -3e38)
    expected = reference(x)
    np.testing.assert_allclose(nn.softmax(kw.asarray(x)).numpy(), expected, rtol=1e-5, atol=1e-7)
    turned = nn.softmax(kw.asarray(x.T), 0).numpy()
    np.testing.assert_allclose(turned, expected.T, rtol=1e-5, atol=1e-7)


def test_scale_dtype_and_out():
    x = random((4, 96), "bfloat16")
    y = nn.softmax(kw.asarray(x), scale=0.125, dtype="float32")
    assert y.dtype == np.float32
    close(y, reference(x, scale=0.125), 2e-6)
    close(nn.softmax(kw.asarray(x), dtype="float64"), reference(x), 2e-6)
    x = random((4, 96))
    close(nn.softmax(kw.asarray(x), dtype="float16"), reference(x), 1e-3)
    array = kw.asarray(x)
    assert nn.softmax(array, out=array) is array
    close(array, reference(x), 2e-6)
    wide = kw.zeros((4, 192))
    view = wide[:, ::2]
    assert nn.softmax(kw.asarray(x), out=view) is view
    close(view, reference(x), 2e-6)
    assert not wide.numpy()[:, 1::2].any()


def test_the_same_result_each_time():
    x = kw.asarray(random((3, 30000)))
    first = nn.softmax(x).numpy()
    assert (nn.softmax(x).numpy() == first).all()


def test_what_is_refused():
    x = kw.zeros((3, 4))
    with pytest.raises(kw.InvalidArgument, match="axis"):
        nn.softmax(x, 2)
    with pytest.raises(kw.InvalidArgument, match=r"int32.*astype"):
        nn.softmax(kw.zeros((3, 4), "int32"))
    with pytest.raises(kw.InvalidArgument, match=r"\(5,\)"):
        nn.softmax(x, mask=kw.ones(5, "bool"))
    with pytest.raises(kw.InvalidArgument, match="int8"):
        nn.softmax(x, mask=kw.ones((3, 4), "int8"))
    with pytest.raises(kw.InvalidArgument, match="int32"):
        nn.softmax(x, dtype="int32")
    with pytest.raises(kw.InvalidArgument, match="must be the same"):
        nn.softmax(x, out=kw.zeros((4, 3)))
    with pytest.raises(kw.InvalidArgument, match="must be the same"):
        nn.softmax(x, dtype="float16", out=x)
    with pytest.raises(kw.InvalidArgument, match="Incompatible dimensions"):
        nn.softmax_backward(x, kw.zeros((4, 3)))
    with pytest.raises(kw.InvalidArgument, match="float16"):
        nn.softmax_backward(x, kw.zeros((3, 4), "float16"))
    with pytest.raises(kw.ArgumentError, match="asarray"):
        nn.softmax(np.zeros((3, 4), np.float32))
    with pytest.raises(TypeError):
        nn.softmax(x, "rows")


# ---- gradients


def reference_backward(dy, y, axis=-1, log=False, scale=1.0):
    dy, y = np.asarray(dy, np.float64), np.asarray(y, np.float64)
    if log:
        return scale * (dy - np.exp(y) * dy.sum(axis, keepdims=True))
    return scale * y * (dy - (dy * y).sum(axis, keepdims=True))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((5, 3), "float32"), ((5, 64), "float64"), ((3, 1001), "float32"), ((3, 1500), "bfloat16"),
     ((2, 9000), "float16"), ((1, 20000), "float32"), ((80, 8200), "float16")],
)  # fmt: skip
def test_gradients(shape, dtype, log):
    x, dy = random(shape, dtype), random(shape, dtype, 3)
    forward, backward = (
        (nn.log_softmax, nn.log_softmax_backward) if log else (nn.softmax, nn.softmax_backward)
    )
    y = forward(kw.asarray(x))
    dx = backward(kw.asarray(dy), y, scale=0.5)
    expected = reference_backward(dy, y.numpy(), log=log, scale=0.5)
    error = np.linalg.norm(dx.numpy().astype(np.float64) - expected) / np.linalg.norm(expected)
    assert error < DTYPES[dtype]


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_columns_and_views(axis):
    y, dy = nn.softmax(kw.asarray(random((6, 37, 20))), axis), random((6, 37, 20), seed=9)
    dx = nn.softmax_backward(kw.asarray(dy), y, axis)
    close(dx, reference_backward(dy, y.numpy(), axis), 5e-6)
    dx = nn.softmax_backward(kw.asarray(dy)[::2, ::-1], y[::2, ::-1], axis)
    close(dx, reference_backward(dy[::2, ::-1], y.numpy()[::2, ::-1], axis), 5e-6)
    log = nn.log_softmax(kw.asarray(random((6, 37, 20))), axis)
    dx = nn.log_softmax_backward(kw.asarray(dy), log, axis)
    close(dx, reference_backward(dy, log.numpy(), axis, True), 5e-6)


def test_gradients_against_differences():
    x, dy = random((2, 6), "float64"), random((2, 6), "float64", 1)
    step = 1e-6
    for log, backward in ((False, nn.softmax_backward), (True, nn.log_softmax_backward)):
        numeric = np.zeros_like(x)
        for i in np.ndindex(x.shape):
            off = np.zeros_like(x)
            off[i] = step
            change = reference(x + off, log=log, scale=2.0) - reference(x - off, log=log, scale=2.0)
            numeric[i] = (change * dy).sum() / (2 * step)
        y = (nn.log_softmax if log else nn.softmax)(kw.asarray(x), scale=2.0)
        dx = backward(kw.asarray(dy), y, scale=2.0).numpy()
        np.testing.assert_allclose(dx, numeric, rtol=1e-6, atol=1e-8)


# ---- checks and graphs


def every_kernel(x, long, many, mask):
    for function, backward in (
        (nn.softmax, nn.softmax_backward),
        (nn.log_softmax, nn.log_softmax_backward),
    ):
        for values in (x[:, :20], x, long):
            backward(values, function(values))
        backward(x, function(x, 0), 0)
        function(x, mask=mask)
        function(many)


def test_under_all_checks(sim):
    x, long = kw.asarray(random((4, 1300))), kw.asarray(random((1, 17000)))
    many = kw.asarray(random((80, 16400), "float64"))
    mask = kw.asarray(np.arange(1300) % 5 > 0)
    with kw.checks("memory", "init", "race", "sync") as report:
        every_kernel(x, long, many[:1], mask)
        kw.current_device().synchronize()
    assert not report.findings
    with kw.checks("memory", "init", "race", "sync") as report:
        nn.softmax(many)
        kw.current_device().synchronize()
    assert not report.findings


@pytest.mark.parametrize("shape", [(4, 1301), (67, 16389)])
def test_rows_at_any_address_touch_no_other_elements(sim, shape):
    """The memory in front is unwritten, and then other blocks write it. None is behind."""
    size, values = shape[0] * shape[1], random(shape, "bfloat16")
    for first in range(1, 8):
        memory = kw.empty(2 * size + first, "bfloat16")
        out, x = memory[first:-size].reshape(shape), memory[-size:].reshape(shape)
        x[...] = kw.asarray(values)
        with kw.checks("memory", "init", "race", "sync") as report:
            result = nn.softmax(x)
            nn.softmax(x, out=out)
            kw.current_device().synchronize()
        assert not report.findings
        assert (out.numpy().view(np.uint16) == result.numpy().view(np.uint16)).all()
        close(out, reference(values), DTYPES["bfloat16"])


def test_in_a_graph():
    x, out = kw.asarray(random((4, 1300))), kw.zeros((4, 1300))
    dy = kw.asarray(random((4, 1300), seed=2))
    nn.softmax_backward(dy, nn.softmax(x, out=out))
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        nn.softmax(x, out=out)
        dx = nn.softmax_backward(dy, out)
    for seed in (4, 5):
        new = random((4, 1300), seed=seed)
        x[...] = new
        kw.synchronize()
        graph.launch(stream)
        stream.synchronize()
        close(out, reference(new), 2e-6)
        close(dx, reference_backward(dy.numpy(), reference(new)), 1e-5)
