"""Operations over odd views give what they give for contiguous copies, on any device.

Every case of the tables (operations_*.py) with arguments in random layouts, and functions over
small views of random shapes. A run has KERNWRIGHT_TEST_VIEWS draws of each (40 by default), and
begins at the seed KERNWRIGHT_TEST_SEED (0). A failure names its seed: that one alone begins there.
"""

import os

import numpy as np
import operations_arrays
import operations_library
import operations_nn
import operations_numpy
import operations_spatial
import pytest
from every_operation import outputs

import kernwright as kw

DRAWS = int(os.environ.get("KERNWRIGHT_TEST_VIEWS", "40"))
SEED = int(os.environ.get("KERNWRIGHT_TEST_SEED", "0"))
TABLES = (
    *(*operations_arrays.TABLES, *operations_library.TABLES),
    *(*operations_nn.TABLES, *operations_numpy.TABLES, *operations_spatial.TABLES),
)
# Cases that write to arguments, which views with repeated elements refuse.
CASES = [case for table in TABLES for case in table if case.specs]


def odd_view(values, rng):
    """The values on the device as a view with gaps, strides below 0, axes in another order, at an
    odd address. An axis may have stride 0: its elements become those of the first. Every second
    view has rows of neighbours that begin at multiples of their length: whole packs, if it is even.
    """
    rows = values.ndim > 0 and rng.integers(0, 2) == 0
    order = np.arange(values.ndim) if rows else rng.permutation(values.ndim)
    cuts, memory_shape, repeated = [], [], []
    for axis in order:
        extent, kind = values.shape[axis], rng.integers(0, 6)
        step = int(rng.choice([1, 1, 2, 3, -1, -2]))
        if kind == 0 and extent > 0 and not (rows and axis == values.ndim - 1):
            repeated.append(axis)
            extent = 1
        start = int(rng.integers(0, 3)) if kind < 3 else 0
        end = int(rng.integers(0, 3)) if kind == 1 else 0
        if rows and axis == values.ndim - 1:
            step, start, end = 1, 0, extent * int(rng.integers(0, 3))
        length = start + max(extent - 1, 0) * abs(step) + min(extent, 1) + end
        memory_shape.append(length)
        places = start + abs(step) * np.arange(extent)
        cuts.append((places[::-1] if step < 0 else places, step, start, end))
    for axis in repeated:
        first = np.take(values, [0], axis=axis)
        values = np.broadcast_to(first, values.shape)
    memory = np.asarray(rng.integers(0, 2, memory_shape)).astype(values.dtype)
    slim = values[tuple(slice(0, 1) if a in repeated else slice(None) for a in range(values.ndim))]
    memory[np.ix_(*(places for places, *_ in cuts))] = slim.transpose(order)
    ahead = 0 if rows else int(rng.integers(0, 4))
    flat = np.concatenate([np.zeros(ahead, memory.dtype), memory.ravel()])
    view = kw.asarray(flat)[ahead:].reshape(memory.shape)
    slices = []
    for (places, step, start, end), length in zip(cuts, memory_shape, strict=True):
        whole = slice(start, length - end)
        slices.append((whole, slice(None, None, step)) if places.size else (slice(0, 0), None))
    for number, (whole, stride) in enumerate(slices):
        ahead_axes = (slice(None),) * number
        view = view[(*ahead_axes, whole)]
        if stride is not None:
            view = view[(*ahead_axes, stride)]
    view = kw.permute_dims(view, tuple(int(a) for a in np.argsort(order)))
    if repeated:
        view = kw.broadcast_to(view, values.shape)
    assert view.shape == values.shape
    return view


def numbers(array):
    values = np.asarray(array.numpy())
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def close(got, wanted, what):
    """By the precision of the results' dtypes: sums may be made in another order."""
    assert len(got) == len(wanted), what
    for ours, exact in zip(got, wanted, strict=True):
        assert (ours.shape, ours.dtype) == (exact.shape, exact.dtype), what
        a, b = numbers(ours), numbers(exact)
        if exact.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b, what)
            continue
        precision = float(kw.finfo(exact.dtype).eps) if exact.dtype.kind != "c" else 1e-6
        finite = np.abs(b[np.isfinite(b)])
        scale = float(finite.max(initial=0)) or 1.0
        tolerance = 300 * max(precision, 1e-7)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(a, b, tolerance, tolerance * scale, err_msg=what)


def attempt(call):
    """The arrays of a result, or the error."""
    try:
        return outputs(call()), None
    except kw.Error as error:
        return None, error


def compare(got, error, wanted, refused, what):
    """The results, or that both calls are refused."""
    assert (error is None) == (refused is None), f"{what}: {error or refused}"
    if error is None:
        close(got, wanted, what)


# What functions that write to their arguments say of views, where they do not take all.
REFUSALS = ("repeats elements", "read-only", "contiguous", "side by side", "without gaps")
# Results of these differ with roundings: signs and orders of vectors, values between codes.
UNSTEADY = ("svd", "eig", "qr", "quantize", "pinv", "lstsq", "cond", "permute", "unpermute")


def all_of(check, draws):
    """Runs check(draw) for each, and names every failure."""
    failures = []
    for draw in draws:
        try:
            check(draw)
        except AssertionError as error:
            failures.append(f"draw {draw}: {str(error)[:1000]}")
    assert not failures, f"{len(failures)} of {len(draws)}:\n" + "\n".join(failures)


def check_case(draw, case):
    rng = np.random.default_rng([SEED, draw])
    views = [odd_view(spec.values(SEED + i), rng) for i, spec in enumerate(case.specs)]
    what = f"{case.id}, strides {[view.strides for view in views]}"
    copies = [kw.asarray(view.numpy()) for view in views]
    wanted, refused = attempt(lambda: [case.call(*copies), copies])
    changes = any(
        a.numpy().tobytes() != b.numpy().tobytes() for a, b in zip(views, copies, strict=True)
    )
    if changes and any(0 in view.strides for view in views):
        return  # an element written at one index changes at others
    got, error = attempt(lambda: [case.call(*views), views])
    if refused is None and any(text in str(error) for text in REFUSALS):
        return
    compare(got, error, wanted, refused, what)


@pytest.mark.parametrize("part", range(4))
def test_every_case_of_the_tables(part):
    chosen = np.random.default_rng(SEED).permutation(len(CASES))
    steady = [CASES[i] for i in chosen if not any(name in CASES[i].name for name in UNSTEADY)]
    all_of(lambda draw: check_case(draw, steady[draw % len(steady)]), range(part, DRAWS, 4))


DTYPES = ("float32", "uint8", "int64", "float16", "float64", "int32", "bool", "bfloat16")
OTHERS = {"uint8": "float32", "bool": "int32", "float16": "float32", "int64": "float64"}


def on_axis(name, **options):
    return lambda x, axis: getattr(kw, name)(x, axis=axis, **options)


FUNCTIONS = {
    "astype": lambda x, _: x.astype(OTHERS.get(x.dtype.name, "float16")),
    "astype wider": lambda x, _: x.astype("float64"),
    "copy": lambda x, _: x.copy(),
    "reshape": lambda x, _: x.reshape(-1),
    "add": lambda x, _: x + x,
    "less": lambda x, _: x < kw.flip(x),
    "where": lambda x, _: kw.where(x > 0, x, kw.flip(x)),
    "sum": on_axis("sum"),
    "max": on_axis("max"),
    "argmin": on_axis("argmin"),
    "count_nonzero": on_axis("count_nonzero"),
    "cumulative_sum": on_axis("cumulative_sum"),
    "sort": on_axis("sort"),
    "argsort": on_axis("argsort"),
    "roll": lambda x, axis: kw.roll(x, 1, axis=axis),
    "concat": lambda x, axis: kw.concat([x, kw.flip(x, axis=axis)], axis=axis),
    "stack": lambda x, axis: kw.stack([x, kw.flip(x, axis=axis)], axis=axis),
    "repeat": lambda x, axis: kw.repeat(x, 2, axis=axis),
    "pad": lambda x, _: kw.pad(x, 2, "edge"),
    "tile": lambda x, _: kw.tile(x, 2),
    "take": lambda x, axis: kw.take(x, kw.asarray([0, -1, 0]), axis=axis),
    "isin": lambda x, _: kw.isin(x, x.reshape(-1)[:2]),
    "unique": lambda x, _: kw.unique_counts(x),
    "nonzero": lambda x, _: kw.nonzero(x),
    "mask": lambda x, _: x[x > 0],
    "view": lambda x, _: kw.zeros(x.shape, x.dtype) + x,
    "assign": lambda x, _: _assigned(x, "float64"),
    "assign narrow": lambda x, _: _assigned(x, "uint8"),
    "into view": lambda x, axis: _into_view(x, axis),
    "item": lambda x, _: kw.asarray(x.reshape(-1)[-1].numpy()),
    "rfft": lambda x, axis: kw.fft.rfft(x, axis=axis),
    "tril": lambda x, _: kw.tril(x) if x.ndim > 1 else x,
    "softmax": lambda x, axis: kw.nn.softmax(x.astype("float32"), axis),
    "mean of slices": lambda x, axis: kw.mean(x.astype("float32"), axis=axis),
}


def _assigned(x, dtype):
    made = kw.ones((2, *x.shape), dtype)[1]
    made[...] = x if dtype == "float64" or x.dtype.kind in "ub" else kw.abs(x).astype("uint8")
    return made


def _into_view(x, axis):
    wide = kw.zeros(tuple(2 * extent + 1 for extent in x.shape), x.dtype)
    target = wide[tuple(slice(1, None, 2) for _ in x.shape)]
    kw.flip(target, axis=axis)[...] = x
    return wide


# Around those of packs of 16 bytes, and 1.
EXTENTS = (1, 1, 2, 2, 3, 4, 4, 5, 8, 8, 9, 16, 16, 17, 33)


def check_function(draw):
    rng = np.random.default_rng([SEED + 7, draw])
    name = list(FUNCTIONS)[draw % len(FUNCTIONS)]
    # Functions and dtypes in pairs: each one is compiled.
    dtype = DTYPES[(draw // len(FUNCTIONS) + draw) % len(DTYPES)]
    shape = tuple(int(n) for n in rng.choice(EXTENTS, int(rng.integers(1, 5))))
    if np.prod(shape) > 20000:
        return
    low, high = (0 if dtype in ("uint8", "bool") else -50), (2 if dtype == "bool" else 50)
    values = kw.asarray(rng.integers(low, high, shape).astype("int16")).astype(dtype).numpy()
    view, axis = odd_view(values, rng), int(rng.integers(-len(shape), len(shape)))
    what = f"{name} of {dtype}{shape}, axis {axis}, strides {view.strides}"
    wanted, refused = attempt(lambda: FUNCTIONS[name](kw.asarray(view.numpy()), axis))
    got, error = attempt(lambda: FUNCTIONS[name](view, axis))
    compare(got, error, wanted, refused, what)


@pytest.mark.parametrize("part", range(4))
def test_functions_over_small_views(part):
    all_of(check_function, range(part, 4 * DRAWS, 4))
