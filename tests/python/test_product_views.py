"""Products of views with strides of 0, below 0 and of any size against NumPy in float64.

The numbers are small integers, so that every sum is exact. Devices below 9.0 do products another
way than those of 9.0: there this file runs once more on a simulated device of 9.0.
"""

import itertools

import numpy as np
import pytest
from hopper import run_at_9_0, simulated_elsewhere

import kernwright as kw

nn = kw.nn
RNG = np.random.default_rng(55)
START = RNG.bit_generator.state
BATCHES = (2, 3)


@pytest.fixture(autouse=True)
def same_numbers():
    """A test has the same numbers in any order of tests."""
    RNG.bit_generator.state = START


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


def whole(shape, dtype):
    """Numbers from -2 to 2 on the device."""
    return kw.asarray(RNG.integers(-2, 3, shape).astype(np.int8)).astype(dtype)


def repeated(shape, dtype, axes):
    one = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    return kw.broadcast_to(whole(one, dtype), shape)


def reversed_along(shape, dtype, axes):
    cut = tuple(slice(None, None, -1) if axis in axes else slice(None) for axis in range(4))
    return whole(shape, dtype)[cut[: len(shape)]]


def stepped(shape, dtype):
    """Every second row and matrix of a larger array, from its second element on."""
    wide = [2 * extent for extent in shape[:-1]] + [shape[-1] + 1]
    return whole(wide, dtype)[tuple([slice(None, None, 2)] * (len(shape) - 1) + [slice(1, None)])]


def turned(shape, dtype):
    return kw.matrix_transpose(whole((*shape[:-2], shape[-1], shape[-2]), dtype))


def last_of(shape, dtype, axes):
    """Reversed axes of which a single element is left, with a stride below 0; then repeated."""
    one = [3 if axis in axes else extent for axis, extent in enumerate(shape)]
    view = whole(one, dtype)
    for axis in axes:
        cut = [slice(None)] * len(shape)
        cut[axis] = slice(None, None, -1)
        view = view[tuple(cut)]
        cut[axis] = slice(0, 1)
        view = view[tuple(cut)]
    return kw.broadcast_to(view, shape)


VIEWS = {
    "plain": whole,
    "first repeated": lambda shape, dtype: repeated(shape, dtype, (0,)),
    "second repeated": lambda shape, dtype: repeated(shape, dtype, (1,)),
    "batch repeated": lambda shape, dtype: repeated(shape, dtype, (0, 1)),
    "rows repeated": lambda shape, dtype: repeated(shape, dtype, (2,)),
    "columns repeated": lambda shape, dtype: repeated(shape, dtype, (3,)),
    "one number": lambda shape, dtype: repeated(shape, dtype, (0, 1, 2, 3)),
    "batch reversed": lambda shape, dtype: reversed_along(shape, dtype, (0, 1)),
    "rows reversed": lambda shape, dtype: reversed_along(shape, dtype, (2,)),
    "columns reversed": lambda shape, dtype: reversed_along(shape, dtype, (3,)),
    "stepped": stepped,
    "turned": turned,
    "the last": lambda shape, dtype: last_of(shape, dtype, (0, 1)),
}
# Each view on either side, beside one whose batch repeats as well, and beside another one.
PAIRS = [("first repeated", "first repeated"), ("batch repeated", "batch repeated")]
PAIRS += [("second repeated", "second repeated"), ("the last", "the last")]
PAIRS += [(name, list(VIEWS)[(i + 4) % len(VIEWS)]) for i, name in enumerate(VIEWS)]


def exact(x):
    kind = np.complex128 if x.dtype.kind == "c" else np.float64
    return x.numpy().astype(kind)


def assert_same(got, wanted, what):
    if got.dtype == np.int8:
        wanted = wanted.astype(np.int64).astype(np.int8)
    elif got.dtype.itemsize == 2:
        wanted = wanted.astype(got.dtype)
    np.testing.assert_array_equal(exact(got), wanted.astype(exact(got).dtype), err_msg=what)


@pytest.mark.parametrize("rows", [5, 64])
@pytest.mark.parametrize(
    "dtype",
    ["float16", "bfloat16", "int8", "float32", "float64", "int32", "complex64", "bool"],
)
def test_matmul(dtype, rows):
    if rows == 64 and dtype in ("int32", "complex64", "bool"):
        rows = 17  # there is one kernel
    for left, right in PAIRS:
        a = VIEWS[left]((*BATCHES, rows, rows), dtype)
        b = VIEWS[right]((*BATCHES, rows, rows), dtype)
        wanted = np.matmul(exact(a), exact(b))
        if dtype == "bool":
            wanted = wanted != 0
        assert_same(a @ b, wanted, f"{left} @ {right}")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_vectors_and_few_rows(dtype):
    for name, view in VIEWS.items():
        matrices = view((*BATCHES, 64, 128), dtype)
        for vector in (whole(128, dtype), repeated((128,), dtype, (0,)), whole(256, dtype)[::-2]):
            assert_same(matrices @ vector, exact(matrices) @ exact(vector), name)
        for rows in (1, 3):
            few = repeated((rows, 64), dtype, (0,)) if rows == 3 else whole((rows, 64), dtype)
            assert_same(few @ matrices, exact(few) @ exact(matrices), f"{rows} rows, {name}")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_linear(dtype):
    weights = {
        "plain": whole((72, 64), dtype),
        "repeated": repeated((72, 64), dtype, (0,)),
        "reversed": whole((72, 64), dtype)[::-1],
        "turned": whole((64, 72), dtype).T,
    }
    bias = whole(144, dtype)[::-2]
    for number, (name, view) in enumerate(VIEWS.items()):
        x = view((*BATCHES, 5 + 40 * (number % 2), 64), dtype)
        for what, weight in weights.items():
            residual = repeated((*x.shape[:-1], 72), dtype, (1,))
            got = nn.linear(x, weight, bias, residual=residual)
            wanted = exact(x) @ exact(weight).T + exact(bias) + exact(residual)
            assert_same(got, wanted, f"{name}, weight {what}")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_fused_matmul(dtype):
    precision = "tf32" if dtype == "float32" else None
    for (left, right), third in zip(PAIRS, [*VIEWS, *VIEWS], strict=False):
        a = VIEWS[left]((*BATCHES, 40, 64), dtype)
        b = VIEWS[right]((*BATCHES, 64, 48), dtype)
        c = VIEWS[third]((*BATCHES, 40, 48), dtype)
        bias = whole(96, dtype)[::-2]
        got = nn.fused_matmul(a, b, "x + bias - c", c=c, bias=bias, precision=precision)
        assert_same(got, exact(a) @ exact(b) + exact(bias) - exact(c), f"{left}, {right}, {third}")


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn"])
def test_scaled_matmul(dtype):
    for number, (name, view) in enumerate(VIEWS.items()):
        a = view((*BATCHES, 20, 64), dtype)
        b = [turned, stepped, whole][number % 3]((64, 48), dtype)
        rows = repeated((*BATCHES, 20), "float32", (number % 3,)) + 3
        columns = kw.broadcast_to(whole(1, "float32"), (48,)) if number % 2 else whole(48, "f4")
        rows = kw.flip(rows, axis=2) if number % 4 == 3 else rows
        got = nn.scaled_matmul(a, b, rows, columns, dtype="float32")
        wanted = (exact(a) * exact(rows)[..., None]) @ (exact(b) * exact(columns))
        assert_same(got, wanted, name)


def test_scaled_matmul_of_blocks():
    a, b = whole((20, 256), "float8_e4m3fn"), whole((256, 192), "float8_e4m3fn").T.copy().T
    for scale_a, scale_b in (
        (kw.broadcast_to(whole((20, 1), "f4"), (20, 2)), kw.broadcast_to(whole(2, "f4"), (2, 2))),
        (whole((20, 2), "f4")[::-1, ::-1], whole((2, 2), "f4")[::-1].T),
        (whole((2, 40), "f4")[:, ::2].T, whole((4, 2), "f4")[::-2]),
    ):
        for left in (a, a[::-1], kw.broadcast_to(a[:1], a.shape)):
            got = nn.scaled_matmul(left, b, scale_a, scale_b, dtype="float32")
            tiles = np.repeat(np.repeat(exact(scale_b), 128, 0), 128, 1)[:, :192]
            wanted = (exact(left) * np.repeat(exact(scale_a), 128, 1)) @ (exact(b) * tiles)
            assert_same(got, wanted, "blocks")


@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_grouped_linear(dtype):
    ends = np.array([0, 5, 5, 40])
    offsets = kw.asarray(np.repeat(ends, 2).astype(np.int32))[::2]
    xs = (
        whole((40, 64), dtype), repeated((40, 64), dtype, (0,)), whole((40, 64), dtype)[::-1],
        stepped((40, 64), dtype), repeated((40, 64), dtype, (1,)),
    )  # fmt: skip
    weights = (
        repeated((3, 48, 64), dtype, (0,)), whole((3, 48, 64), dtype)[::-1],
        turned((3, 48, 64), dtype), last_of((3, 48, 64), dtype, (0,)), stepped((3, 48, 64), dtype),
    )  # fmt: skip
    for x, weight in zip(xs, weights, strict=True):
        groups = list(itertools.pairwise(ends))
        got = nn.grouped_linear(x, weight, offsets)
        parts = [exact(x)[a:b] @ w.T for (a, b), w in zip(groups, exact(weight), strict=True)]
        assert_same(got, np.concatenate(parts), "grouped")
        grad = kw.broadcast_to(whole((1, 48), dtype), (40, 48))
        dx, dw = nn.grouped_linear_backward(grad, x, weight, offsets)[:2]
        parts = [exact(grad)[a:b] @ w for (a, b), w in zip(groups, exact(weight), strict=True)]
        assert_same(dx, np.concatenate(parts), "gradient of rows")
        parts = [exact(grad)[a:b].T @ exact(x)[a:b] for a, b in groups]
        assert_same(dw, np.stack(parts), "gradient of weights")


def test_packed_weights():
    weight = nn.quant.pack(nn.quant.quantize(whole((48, 256), "bfloat16"), "q8_0"), "q8_0")
    dense = exact(nn.quant.unpack(weight))
    for number, (name, view) in enumerate(VIEWS.items()):
        x = view((*BATCHES, 1 + 12 * (number % 2), 256), "bfloat16")
        got = nn.linear(x, weight)
        wanted = exact(x) @ dense.T
        np.testing.assert_allclose(exact(got), wanted, rtol=1e-2, atol=1, err_msg=name)


def test_attention_of_single_elements_of_reversed_axes():
    for tokens in (1, 17, 40):
        q = [whole((1, 2, tokens, 64), "float16"), last_of((1, 2, tokens, 64), "float16", (0,))]
        kv = [last_of((1, 2, 40, 64), "float16", (0,)), last_of((1, 1, 40, 64), "float16", (1,))]
        kv.append(last_of((1, 2, 1, 64), "float16", (2,)))
        for x, y in itertools.product(q, kv):
            wanted = nn.attention(x.copy(), y.copy(), y.copy(), enable_gqa=True).numpy()
            got = nn.attention(x, y, y, enable_gqa=True).numpy()
            np.testing.assert_allclose(got.astype("f4"), wanted.astype("f4"), 2e-3, 2e-3)
