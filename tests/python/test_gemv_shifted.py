"""Products with few rows whose weights begin at any element, against float64."""

import numpy as np
import pytest
from nn_arrays import assert_close, values, wide

import kernwright as kw

SHIFTED, STAGED = 11, 5


def check(x, w, plan=(), tolerance=2):
    expected = wide(x.numpy()) @ np.swapaxes(wide(w.numpy()), -1, -2)
    dtype = str(x.dtype)
    assert_close(kw._core._skinny_product(x, w, plan=list(plan)), expected, dtype, tolerance)


def names_of(function):
    graph, stream = kw.Graph(), kw.Stream()
    with graph.capture(stream):
        function()
    return " ".join(node.name for node in graph.nodes if node.name)


@pytest.mark.parametrize("of", ["bfloat16", "float32"])
def test_rows_of_odd_lengths(of):
    """No byte outside of a row is read."""
    with kw.checks("memory", "init", "race", "sync") as report:
        for m, n, k in [(1, 5, 2925), (2, 9, 771), (3, 7, 1030), (8, 4, 273)]:
            check(kw.asarray(values((m, k), of, 7)), kw.asarray(values((n, k), of, 8)))
        x, w = values((2, 2, 513), of, 5), values((2, 3, 513), of, 6)
        check(kw.asarray(x), kw.asarray(w), (SHIFTED, 4, 2, 2))
    report.raise_if_any()


def test_rows_from_each_place_of_16_bytes():
    x, w = values((1, 1304), "bfloat16", 6), values((3, 1304), "bfloat16", 9)
    for first in range(8):
        line = kw.asarray(np.concatenate([w[0, :first], w.ravel()]))
        view = line[first:].reshape(3, 1304)[:, :1296]
        with kw.checks("memory", "init") as report:
            for plan in ((), (SHIFTED, 1, 1, 1, 1, 0, 2)):  # blocks that share k
                check(kw.asarray(x)[:, :1296], view, plan)
        report.raise_if_any()


def test_it_is_taken():
    x, w = kw.asarray(values((2, 515), "float16", 1)), kw.asarray(values((1100, 515), "float16", 2))
    assert "skinny_shifted" in names_of(lambda: kw.matmul(x, w.T))
    assert "skinny_shifted" not in names_of(
        lambda: kw.matmul(x[:, :512].copy(), w[:, :512].T.copy())
    )
    check(x, w)


def test_short_rows_take_another_kernel():
    check(kw.asarray(values((1, 33), "float32", 1)), kw.asarray(values((9, 33), "float32", 2)),
          (SHIFTED,))  # fmt: skip


@pytest.mark.parametrize("of", ["bfloat16", "float16"])
@pytest.mark.parametrize("parts", [4, 2])  # elements of a copy: rows of k begin at multiples of it
def test_more_rows_are_copied_in_parts_of_4_or_8_bytes(of, parts):
    with kw.checks("memory", "init", "race", "sync") as report:
        for m, n, k in [(9, 67, 264 + parts), (17, 5, 64 + parts), (33, 130, parts), (64, 3, 72)]:
            x, w = values((m, k), of, 3), values((n, k), of, 4)
            check(kw.asarray(x), kw.asarray(w))
            longer = kw.asarray(np.pad(w, ((0, 0), (0, parts))))[:, :k]  # rows with gaps
            check(kw.asarray(x), longer, (STAGED, 4, 1, 2, -1, 2))
        x, w = values((2, 9, 60 + parts), of, 5), values((2, 20, 60 + parts), of, 6)
        check(kw.asarray(x), kw.asarray(w))
    report.raise_if_any()


@pytest.mark.parametrize(("k", "taken"), [(2052, True), (2050, True), (2051, False)])
def test_copies_in_parts_are_taken(k, taken):
    x, w = kw.asarray(values((9, k), "float16", 1)), kw.asarray(values((512, k), "float16", 2))
    assert ("skinny_staged" in names_of(lambda: kw.matmul(x, w.T))) is taken
    assert_close(kw.matmul(x, w.T), wide(x.numpy()) @ wide(w.numpy()).T, "float16", 2)
    shifted = kw.asarray(np.append(np.float16(0), x.numpy().ravel()))[1:].reshape(9, k)
    assert "skinny_staged" not in names_of(lambda: kw.matmul(shifted, w.T))
