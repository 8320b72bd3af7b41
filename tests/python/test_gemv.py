"""Products with few rows, by kw.nn.linear() and by matmul(), against float64."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from children import run_child
from nn_arrays import TYPES, assert_close, values, views, wide

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

nn = kw.nn
NARROW = {"int8": np.int8, **{n: getattr(ml_dtypes, n) for n in ("float8_e4m3fn", "float8_e5m2")}}
TILES, DOT, COLUMN_TILES, STAGED, WGMMA, ROW, BYTES = 1, 2, 3, 5, 7, 8, 10


def weights(shape, dtype, seed=1):
    if dtype == "int8":
        return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    return values(shape, "float32", seed).astype(NARROW.get(dtype) or TYPES[dtype])


def product(x, w, plan=(), **extra):
    """As kw.nn.linear() calls it, with a plan of the kernels."""
    return kw._core._skinny_product(x, w, plan=list(plan), **extra)


def check(x, w, plan=(), dtype="bfloat16"):
    expected = wide(x) @ np.swapaxes(wide(w), -1, -2)
    got = product(kw.asarray(x), kw.asarray(w), plan)
    assert str(got.dtype) == dtype and got.shape == expected.shape
    scale = np.sqrt(max(1, x.shape[-1])) * (74 if w.dtype == np.int8 else 1)
    error = np.abs(wide(got.numpy()) - expected).max(initial=0) / scale
    assert error < {"bfloat16": 0.02, "float16": 0.003, "float32": 3e-6}[dtype], (x.shape, w.shape)


# ------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("of", ["bfloat16", "float16"])
@pytest.mark.parametrize("dtype", ["same", *NARROW])
def test_each_format_of_the_weights(of, dtype):
    for m, n, k in [(1, 64, 256), (5, 37, 528), (8, 1, 16), (3, 16, 4096 + 32)]:
        w = weights((n, k), of if dtype == "same" else dtype)
        check(values((m, k), of, m + 10), w, (TILES,), of)


@pytest.mark.parametrize("dtype", NARROW)
def test_more_rows_with_weights_of_one_byte(dtype):
    """Plans for large weights on Hopper."""
    with kw.checks("memory", "init", "race", "sync") as report:
        for m, plan in [
            (16, (TILES, 4, 2, 2, 1, 1)),
            (31, (TILES, 8, 2, 1, 1, 1)),
            (64, (STAGED, 4, 1, 4, 0, 2)),
            (8, (TILES, 8, 1, 4, 1, 1, 1)),
            (5, (TILES, 4, 2, 2, 1, 1, 1)),
        ]:
            check(values((m, 528), "bfloat16", m), weights((70, 528), dtype), plan)
    report.raise_if_any()


ROW_SHAPES = [(1, 16), (8, 512), (77, 2048 + 16), (150, 528), (9, 4608), (19, 8192 + 272)]


def one_row(dtype):
    """Persistent blocks, with early ends of rows, parts of k and tiles of a block."""
    with kw.checks("memory", "init", "race", "sync") as report:
        for number, (n, k) in enumerate(ROW_SHAPES):
            of = "float16" if number % 2 else "bfloat16"
            check(values((1, k), of, number + 2), weights((n, k), dtype), (ROW,), of)
        # Blocks with several tiles: the last of them has none, or ends early.
        for n, k, warps in [(8 * 132 * 3 - 5, 528, 16), (8 * 132 * 2 + 3, 4624, 9)]:
            check(values((1, k), "bfloat16", 9), weights((n, k), dtype), (ROW, warps))
    report.raise_if_any()


@pytest.mark.parametrize("dtype", NARROW)
def test_one_row_with_weights_of_one_byte(dtype):
    one_row(dtype)


def test_one_row_ends_as_others_do():
    """Scale of one number or of each row, bias, activation, residual; NaN stays in its row."""
    n, k = 37, 1040
    x, w = values((1, k), "bfloat16"), weights((n, k + 16), "float8_e4m3fn")
    w[5, 3] = w[36, k - 1] = np.nan
    bias, residual = values((n,), "bfloat16", 2), values((1, n), "bfloat16", 3)
    for scale in (np.full(1, 0.5, np.float32), values((n,), "float32", 4)):
        got = product(kw.asarray(x), kw.asarray(w)[:, :k], (ROW,), scale=kw.asarray(scale),
                      bias=kw.asarray(bias), residual=kw.asarray(residual), activation="silu",
                      factor=2)  # fmt: skip
        sums = 2 * scale * (wide(x) @ wide(w[:, :k]).T) + wide(bias)
        assert_close(got, sums / (1 + np.exp(-sums)) + wide(residual), "bfloat16", 8)
        assert np.array_equal(np.isnan(wide(got.numpy()))[0].nonzero()[0], [5, 36])


def test_one_row_of_other_sizes_takes_another_kernel():
    for n, k, first in [(9, 16384 + 16, 0), (9, 40, 0), (9, 512, 1)]:
        x, w = values((1, k), "bfloat16"), weights((n, k + 16), "int8")
        got = product(kw.asarray(x), kw.asarray(w)[:, first : first + k], (ROW,))
        expected = wide(x) @ wide(w[:, first : first + k]).T
        assert np.linalg.norm(wide(got.numpy()) - expected) < 4e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("of", ["bfloat16", "float16", "float32"])
def test_every_code_is_exact(of, dtype):
    codes = np.arange(256, dtype=np.uint8).view(NARROW[dtype])
    w = np.zeros((256, 32), codes.dtype)
    places = np.arange(256) % 32
    w[np.arange(256), places] = codes
    x = np.ones((1, 32), TYPES[of])
    for plan in ((), (ROW,)):
        got = wide(product(kw.asarray(x), kw.asarray(w), plan).numpy())[0]
        assert np.array_equal(got, wide(codes), equal_nan=True)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_many_rows_through_shared_memory(dtype):
    for m, n, k in [(9, 130, 160), (16, 128, 1024), (13, 7, 16)]:
        check(values((m, k), "bfloat16", m), weights((n, k), dtype), (STAGED,))


def test_sixty_four_rows():
    check(values((64, 528), "float16"), weights((200, 528), "float16"), dtype="float16")
    check(values((3, 33, 64), "float16"), weights((3, 70, 64), "float16"), dtype="float16")


@pytest.mark.parametrize(
    ("kernel", "layout"),
    [(TILES, "nk"), (DOT, "nk"), (STAGED, "nk"), (COLUMN_TILES, "kn")],
)
def test_blocks_that_share_k_add_up_in_order(kernel, layout):
    x, w = values((4, 2048), "bfloat16"), values((72, 2048), "bfloat16", 1)
    device = kw.asarray(w) if layout == "nk" else kw.asarray(np.ascontiguousarray(w.T)).T
    one, three = (product(kw.asarray(x), device, (kernel, 0, 0, 0, 0, splits)) for splits in (1, 3))
    again = product(kw.asarray(x), device, (kernel, 0, 0, 0, 0, 3))
    assert np.array_equal(three.numpy(), again.numpy())
    for got in (one, three):
        assert np.linalg.norm(wide(got.numpy()) - wide(x) @ wide(w).T) < 3e-3 * 45 * np.sqrt(288)


def test_odd_sizes_and_addresses():
    for m, n, k in [(1, 5, 1), (3, 7, 33), (2, 3, 1001)]:
        check(values((m, k), "bfloat16"), weights((n, k), "bfloat16"))
    for m, n, k in [(2, 9, 100), (11, 4, 36)]:
        check(values((m, k)), weights((n, k), "float32"), dtype="float32")
    x, w = values((4, 32), "bfloat16"), values((8, 32), "bfloat16", 1)
    for a in views(x):
        got = product(a, kw.asarray(w))
        assert_close(got, wide(x) @ wide(w).T, "bfloat16", 4)
    for b in views(w):
        got = product(kw.asarray(x), b)
        assert_close(got, wide(x) @ wide(w).T, "bfloat16", 4)


@pytest.mark.parametrize("of", ["bfloat16", "float32"])
def test_weights_with_neighbours_along_n(of):
    for m, n, k in [(1, 64, 256), (5, 200, 100), (7, 72, 2052)]:
        x, w = values((m, k), of), values((k, n), of, 1)
        got = nn.linear(kw.asarray(x), kw.asarray(w).T)
        error = np.linalg.norm(wide(got.numpy()) - wide(x) @ wide(w))
        assert error < (3e-3 if of == "bfloat16" else 1e-6) * np.linalg.norm(wide(x) @ wide(w))
    x, w = values((2, 50), of), values((50, 33), of, 1)  # odd rows
    assert_close(nn.linear(kw.asarray(x), kw.asarray(w).T), wide(x) @ wide(w), of, 8)


def test_nothing_to_sum_or_to_give():
    for shape in [(0, 5, 8), (3, 0, 8), (3, 5, 0), (0, 0, 0)]:
        m, n, k = shape
        got = nn.linear(kw.zeros((m, k)), kw.zeros((n, k)), kw.ones(n))
        assert got.shape == (m, n) and (got.numpy() == 1).all()


def test_what_is_no_number_stays_in_its_row_and_column():
    x, w = values((3, 64), "bfloat16"), values((20, 64), "bfloat16", 1)
    x[1, 5], w[7, 9], w[19, 63] = np.nan, np.inf, -np.inf
    got = wide(nn.linear(kw.asarray(x), kw.asarray(w)).numpy())
    assert np.isnan(got[1]).all() and np.isinf(got[[0, 2], 7]).all()
    rest = np.delete(got[[0, 2]], [7, 19], axis=1)
    assert np.isfinite(rest).all()


# ------------------------------------------------------------------------------------- linear


def reference(x, w, bias, activation, residual, scale):
    y = wide(x) @ (wide(w) * wide(scale).reshape(-1, 1)).T + wide(bias)
    y = np.maximum(y, 0) if activation == "relu" else y / (1 + np.exp(-y))
    return y + wide(residual)


@pytest.mark.parametrize(("m", "of", "dtype", "activation"), [
    (3, "bfloat16", "int8", "silu"), (12, "float16", "float8_e4m3fn", "relu"),
    (70, "float16", "int8", "silu"), (2, "float32", "float8_e4m3fn", "relu"),
    (3, "bfloat16", "float8_e5m2", "silu"), (70, "float16", "float8_e5m2", "relu"),
])  # fmt: skip
def test_all_that_follows_a_product(m, of, dtype, activation):
    x = values((2, m // 2 or 1, 64), of)
    w, bias = weights((40, 64), dtype), values(40, of, 2)
    residual = values((*x.shape[:2], 40), of, 3)
    for scale in (np.float32(0.01), values(40, "float32", 4) * np.float32(0.01)):
        arrays = [kw.asarray(a) for a in (x, w, bias)]
        got = nn.linear(
            *arrays, activation=activation, residual=kw.asarray(residual), scale=kw.asarray(scale)
        )
        expected = reference(x, w, bias, activation, residual, scale)
        assert_close(got, expected, of, 6 if m > 64 else 2)


def test_more_rows_than_few_are_a_matrix_product():
    for of in ("float32", "float64"):
        x, w, bias = values((90, 30), of), values((11, 30), of, 1), values(11, of, 2)
        got = nn.linear(kw.asarray(x), kw.asarray(w), kw.asarray(bias))
        assert_close(got, wide(x) @ wide(w).T + wide(bias), of, 20)


def test_matmul_takes_them():
    x, w = values((3, 200), "float32"), values((200, 128), "float32", 1)
    device, tall = kw.asarray(x), values((130, 200), "float32", 2)
    assert_close(device @ kw.asarray(w), wide(x) @ wide(w), factor=20)
    assert_close(device[0] @ kw.asarray(w), wide(x[0]) @ wide(w), factor=20)
    got = kw.asarray(tall) @ device[1]
    assert_close(got, wide(tall) @ wide(x[1]), factor=20)
    assert got.shape == (130,)
    many = values((4, 2, 200), "float32", 3)
    assert_close(kw.asarray(many) @ kw.asarray(w), wide(many) @ wide(w), factor=20)
    stack = values((4, 200, 128), "float32", 4)
    assert_close(kw.asarray(many) @ kw.asarray(stack), wide(many) @ wide(stack), factor=20)
    columns = values((4, 128, 1), "float32", 5)
    assert_close(kw.asarray(stack) @ kw.asarray(columns), wide(stack) @ wide(columns), factor=20)


def test_wrong_arguments():
    x, w = kw.zeros((2, 8)), kw.zeros((4, 8))
    for call in (
        lambda: nn.linear(x, kw.zeros((4, 7))),
        lambda: nn.linear(x, kw.zeros(8)),
        lambda: nn.linear(x, w, kw.zeros(3)),
        lambda: nn.linear(x, w, residual=kw.zeros((4, 2))),
        lambda: nn.linear(x, w.astype("float16")),
        lambda: nn.linear(x, w.astype("int8")),
        lambda: nn.linear(x, w, scale=kw.ones(())),
        lambda: nn.linear(x, w.astype("int8"), scale=kw.ones(3)),
        lambda: nn.linear(x.astype("int32"), w.astype("int32")),
        lambda: product(kw.zeros((65, 8)), w),
        lambda: product(kw.zeros((2, 2, 8)), kw.zeros((3, 4, 8))),
    ):
        with pytest.raises(InvalidArgument, match=r"\(2, 8\)|\(65, 8\)|\(2, 2, 8\)|\(4,|\(3,\)"):
            call()
    with pytest.raises(ArgumentError, match="softplus"):
        nn.linear(x, w, activation="softplus")
    with pytest.raises(ArgumentError):
        nn.linear(x, [1, 2])


# ------------------------------------------------------------------------- graphs and checks


def test_a_graph_replays_with_what_is_there_then():
    x, w = kw.asarray(values((2, 64), "bfloat16")), values((24, 64), "bfloat16", 1)
    device, graph, stream = kw.asarray(w), kw.Graph(), kw.Stream()
    nn.linear(x, device)
    with graph.capture(stream):
        y = nn.linear(x, device)
    other = values((2, 64), "bfloat16", 5)
    x[...] = kw.asarray(other)
    kw.synchronize()
    graph.launch(stream)
    stream.synchronize()
    assert_close(y, wide(other) @ wide(w).T, "bfloat16", 4)


def every_kernel():
    """Each kernel, with blocks sharing k and with prefetched data."""
    with kw.checks("memory", "init", "race", "sync") as report:
        for plan in [
            (TILES, 8, 1, 4, 0, 2, 2),
            (DOT, 8, 2, 2, 0, 2, 1),
            (STAGED, 4, 1, 3, 0, 3, 2),
        ]:
            check(values((3, 1040), "bfloat16"), weights((70, 1040), "bfloat16"), plan)
        check(values((2, 64), "float16"), weights((9, 64), "float8_e4m3fn"), dtype="float16")
        for of in ("bfloat16", "float32"):
            x, w = values((3, 260), of), values((260, 72), of, 1)
            product(kw.asarray(x), kw.asarray(w).T, (0, 0, 0, 0, 0, 2, 2)).numpy()
    report.raise_if_any()


def boxes_of_some_rows():
    """The kernel for Hopper: the layouts, shapes ending inside of boxes, splits, batches."""
    shapes = [(17, 64, 64), (33, 130, 528), (64, 200, 1040), (20, 5, 72), (9, 136, 8)]
    plans = [(WGMMA,), (WGMMA, 4, 0, 0, -1, 3, -1, 3), (WGMMA, 8, 0, 0, -1, 8)]
    for number, (m, n, k) in enumerate(shapes):
        of = "bfloat16" if number % 2 else "float16"
        x, w = values((m, k), of), weights((n, k), of)
        wanted, device = wide(x) @ wide(w).T, [kw.asarray(w)]
        if n % 8 == 0:
            device.append(kw.asarray(np.ascontiguousarray(w.T)).T)
        for each in device:
            for plan in plans:
                got = product(kw.asarray(x), each, plan)
                error = np.linalg.norm(wide(got.numpy()) - wanted)
                assert error < (4e-3 if of == "bfloat16" else 5e-4) * np.linalg.norm(wanted)
            again = product(kw.asarray(x), each, plans[-1])
            assert np.array_equal(got.numpy(), again.numpy())
    batch = values((3, 33, 64), "float16"), values((3, 70, 64), "float16", 1)
    check(*batch, (WGMMA,), "float16")
    check(batch[0], batch[1][:1], (WGMMA, 4, 0, 0, -1, 2), "float16")
    views_of_x = list(views(values((20, 64), "bfloat16")))
    w = values((72, 64), "bfloat16", 1)
    for a in views_of_x:
        got = product(a, kw.asarray(w), (WGMMA,))
        assert_close(got, wide(a.numpy()) @ wide(w).T, "bfloat16", 4)
    x, w = values((3, 64), "bfloat16"), values((20, 64), "bfloat16", 1)
    x[1, 5], w[7, 9], w[19, 63] = np.nan, np.inf, -np.inf
    got = wide(product(kw.asarray(x), kw.asarray(w), (WGMMA,)).numpy())
    assert np.isnan(got[1]).all() and np.isinf(got[[0, 2], 7]).all()
    assert np.isfinite(np.delete(got[[0, 2]], [7, 19], axis=1)).all()
    x, w, bias = (values(s, "bfloat16", i) for i, s in enumerate([(40, 64), (24, 64), (24,)]))
    residual = values((40, 24), "bfloat16", 3)
    got = nn.linear(*map(kw.asarray, (x, w, bias)), activation="silu",
                    residual=kw.asarray(residual))  # fmt: skip
    wanted = wide(x) @ wide(w).T + wide(bias)
    assert_close(got, wanted / (1 + np.exp(-wanted)) + wide(residual), "bfloat16", 4)
    x, w = values((20, 264), "bfloat16"), values((77, 264), "bfloat16", 1)
    for plan in plans:  # an activation alone, and a factor alone
        got = product(*map(kw.asarray, (x, w)), plan, activation="silu")
        wanted = wide(x) @ wide(w).T
        assert_close(got, wanted / (1 + np.exp(-wanted)), "bfloat16", 4)
        got = product(*map(kw.asarray, (x, w)), plan, factor=0.5)
        assert_close(got, wanted / 2, "bfloat16", 4)


def more_batches_than_blocks():
    """Blocks of a cluster have several products one after the other."""
    x, w = values((65535 + 40, 9, 16), "float16"), values((65535 + 40, 8, 16), "float16", 1)
    got = wide(product(kw.asarray(x), kw.asarray(w), (WGMMA, 4, 0, 0, -1, 2, 0, 2)).numpy())
    wanted = wide(x) @ wide(w).transpose(0, 2, 1)
    for part in (slice(0, 40), slice(40, 65535), slice(65535, None)):
        error = np.linalg.norm(got[part] - wanted[part])
        assert error < 5e-4 * np.linalg.norm(wanted[part])


def bytes_by_warpgroups():
    """Weights of one byte, in teams of warps and clusters: parts of k that some teams lack."""
    with kw.checks("memory", "init", "race", "sync") as report:
        for m, n, k, dtype, plan in [
            (33, 100, 560, "int8", (BYTES,)),
            (64, 64, 1040, "float8_e4m3fn", (BYTES, 8, 0, 2, -1, 2, 4, 4)),
            (50, 300, 272, "float8_e4m3fn", (BYTES, 16, 0, 1, -1, 1, 1, 3)),
            (17, 37, 96, "float8_e5m2", (BYTES, 4, 0, 1, -1, 3, 0, 3)),
            (9, 70, 640, "int8", (BYTES, 16, 0, 4, -1, 1, 0, 8)),
        ]:
            x, w = values((m, k), "bfloat16"), weights((n, k), dtype)
            check(x, w, plan)
            again = [product(kw.asarray(x), kw.asarray(w), plan).numpy() for _ in range(2)]
            assert np.array_equal(*again)
    report.raise_if_any()
    for dtype in NARROW:
        x, w = values((40, 272), "float16"), weights((66, 272), dtype)
        check(x, w, (BYTES,), "float16")
    x[3, 5] = np.nan
    got = wide(product(kw.asarray(x), kw.asarray(w), (BYTES,)).numpy())
    assert np.isnan(got[3]).all() and np.isfinite(np.delete(got, 3, 0)).all()
    x, w = values((20, 256), "bfloat16"), weights((72, 256), "int8")
    expected, arrays = wide(x) @ wide(w).T, (kw.asarray(x), kw.asarray(w))
    plans = kw._core._product(*kw._core._layer_operands(*arrays))[3]
    plans = [plan for plan in plans if plan[:2] == ["skinny", BYTES]]
    one = kw.ones(72, "float32")
    assert {plan[2] for plan in plans} == {0, 16}
    for plan in plans:
        got = wide(kw._core._with_product(plan, lambda: nn.linear(*arrays, scale=one)).numpy())
        assert np.linalg.norm(got - expected) <= 3e-3 * np.linalg.norm(expected)
    every = np.tile(np.arange(256, dtype=np.uint8), (64, 1)).view(np.int8)
    got = product(
        kw.asarray(np.eye(64, 256, 3, dtype=TYPES["bfloat16"])), kw.asarray(every), (BYTES,)
    )
    assert np.array_equal(wide(got.numpy()), wide(every[:, 3:67]).T)
    x, w, bias = values((35, 64), "bfloat16"), weights((51, 64), "int8"), values(51, "bfloat16")
    scale, residual = np.linspace(0.01, 0.02, 51, dtype=np.float32), values((35, 51), "bfloat16", 3)
    arrays = {"scale": scale, "bias": bias, "residual": residual}
    arrays = {name: kw.asarray(array) for name, array in arrays.items()}
    got = product(*map(kw.asarray, (x, w)), (BYTES,), activation="silu", **arrays)
    wanted = wide(x) @ wide(w).T * scale + wide(bias)
    assert_close(got, wanted / (1 + np.exp(-wanted)) + wide(residual), "bfloat16", 4)


def boxes_under_all_checks():
    with kw.checks("memory", "init", "race", "sync") as report:
        for m, n, k, plan in [(20, 136, 328, (WGMMA, 8, 0, 0, -1, 2, -1, 3)),
                              (33, 72, 136, (WGMMA, 4, 0, 0, -1, 1, 1, 2)),
                              (50, 70, 264, (WGMMA, 4, 0, 0, -1, 3, 1, 2)),
                              (9, 66, 584, (WGMMA, 4, 0, 0, -1, 8, 1, 2))]:  # fmt: skip
            x, w = values((m, k), "bfloat16"), weights((n, k), "bfloat16")
            check(x, w, plan)
            if n % 8 == 0:
                got = product(kw.asarray(x), kw.asarray(np.ascontiguousarray(w.T)).T, plan)
                assert_close(got, wide(x) @ wide(w).T, "bfloat16", 4)
    report.raise_if_any()


def test_every_kernel_under_all_checks():
    every_kernel()


def test_every_kernel_on_a_newer_device():
    """Splits are a cluster there, and a kernel may begin before the one in front has ended."""
    if not kw.current_device().is_simulated:
        pytest.skip("the device is what it is")
    program = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    program += "from test_gemv import *\n"
    program += "every_kernel()\nboxes_under_all_checks()\nboxes_of_some_rows()\n"
    program += "bytes_by_warpgroups()\nmore_batches_than_blocks()\n"
    program += "for dtype in NARROW: one_row(dtype)\n"
    program += "check(values((1, 4096), 'bfloat16'), weights((4097, 4096), 'int8'))\n"
    program += "check(values((17, 1024), 'bfloat16'), weights((1024, 1024), 'int8'))\n"
    ended = run_child(program + "print('right', end='')", timeout=300,
                      KERNWRIGHT_SIM_CAPABILITY="9.0", KERNWRIGHT_LOG="debug")  # fmt: skip
    assert (ended.code, ended.out) == (0, "right"), ended.err
    for kernel in ("row", "bytes", "wgmma", "tiles", "dot"):
        assert f"launch skinny_{kernel}<BFloat16" in ended.err


def test_boxes_of_some_rows_on_a_gpu():
    if kw.current_device().is_simulated:
        pytest.skip("that is done on a simulated device of 9.0")
    boxes_of_some_rows()
    bytes_by_warpgroups()
    more_batches_than_blocks()


# ------------------------------------------------------------------------------------- gates


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_gated_layers(dtype):
    for lead, n, k in [((5,), 128, 64), ((2, 3, 40), 260, 128), ((), 6, 7), ((0,), 4, 8)]:
        x, w = values((*lead, k), dtype, 3), values((n, k), dtype, 4)
        bias = values((n,), dtype, 5)
        y = wide(x) @ wide(w).T
        got = nn.linear(kw.asarray(x), kw.asarray(w), gate="relu")
        close_by_norm(got, np.maximum(y[..., : n // 2], 0) * y[..., n // 2 :], dtype)
        left, right = np.split(y + wide(bias), 2, axis=-1)
        got = nn.linear(kw.asarray(x), kw.asarray(w), kw.asarray(bias), gate="silu")
        close_by_norm(got, left / (1 + np.exp(-left)) * right, dtype)


def close_by_norm(got, wanted, dtype):
    assert str(got.dtype) == dtype and got.shape == wanted.shape
    bound = {"bfloat16": 3e-3, "float16": 5e-4, "float32": 1e-6}[dtype]
    assert np.linalg.norm(wide(got.numpy()) - wanted) <= bound * np.linalg.norm(wanted)


def test_wrong_gates():
    x, w = kw.ones((2, 8)), kw.ones((6, 8))
    for error, words, call in [
        (ArgumentError, "gate goes with a bias", lambda: nn.linear(x, w, gate="silu", scale=x)),
        (ArgumentError, "gate is 'swish'", lambda: nn.linear(x, w, gate="swish")),
        (ArgumentError, "not ndarray", lambda: nn.linear(x.numpy(), w, gate="silu")),
        (InvalidArgument, "last ones are equal", lambda: nn.linear(x, w[:, :7], gate="silu")),
        (InvalidArgument, "odd", lambda: nn.linear(x, w[:5], gate="silu")),
    ]:
        with pytest.raises(error, match=words):
            call()
