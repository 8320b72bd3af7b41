"""Whole kernels of tests/sim/sources against NumPy and plain Python: as they are, under the checks,
which find nothing, and in orders that seeds choose."""

import functools
import hashlib
from pathlib import Path

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")
SOURCES = Path(__file__).resolve().parents[1] / "sim" / "sources"


@functools.cache
def module(name):
    return kw.module((SOURCES / f"{name}.cu").read_text())


def bits(random, *shape):
    return random.integers(0, 1 << 32, shape, dtype=np.uint32)


def normal(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


# Each case returns source, grid, block, shared bytes, arguments, {argument: expected}, tolerance.
def sha256(random):
    count, length = 70, 130
    text = random.integers(0, 256, count * length, dtype=np.uint8)
    digests = [
        hashlib.sha256(text[i * length : i * length + length - i % 7].tobytes()).digest()
        for i in range(count)
    ]
    expected = np.frombuffer(b"".join(digests), ">u4")
    out = np.zeros(count * 8, np.uint32)
    return "probe_algorithms", 3, 32, 0, [text, length, out, count], {2: expected}, 0


def merge_path(random):
    a, b = (np.sort(random.integers(0, 500, n, dtype=np.int32)) for n in (700, 901))
    out = np.zeros(1601, np.int32)
    expected = np.sort(np.concatenate([a, b]))
    return "probe_algorithms", 4, 64, 0, [a, a.size, b, b.size, out, 7], {4: expected}, 0


def topk_bitonic(random):
    x = normal(random, 4, 400)
    values, indices = np.zeros((4, 10), np.float32), np.zeros((4, 10), np.int32)
    order = np.argsort(-x, 1, kind="stable")[:, :10]
    expected = {1: np.take_along_axis(x, order, 1), 2: order}
    return "probe_algorithms", 4, 256, 0, [x, values, indices, 400, 10], expected, 0


def smith_waterman(random):
    n = 100
    a, b = random.integers(0, 4, (2, n)).astype(np.int8)
    score = np.zeros((n + 1, n + 1), np.int32)
    for i in range(n):
        for j in range(n):
            same = score[i, j] + (3 if a[i] == b[j] else -1)
            score[i + 1, j + 1] = max(0, same, score[i, j + 1] - 2, score[i + 1, j] - 2)
    best = np.zeros(1, np.int32)
    return "probe_algorithms", 1, 128, 0, [a, b, best, n], {2: [score.max()]}, 0


def levenshtein_u16(random):
    n, m = 20, 30
    a, b = random.integers(0, 4, (64, n), np.uint8), random.integers(0, 4, (64, m), np.uint8)
    expected = []
    for x, y in zip(a, b, strict=True):
        row = list(range(m + 1))
        for i in range(n):
            above = [i + 1]
            for j in range(m):
                above.append(min(row[j + 1] + 1, above[j] + 1, row[j] + int(x[i] != y[j])))
            row = above
        expected.append(row[m])
    out = np.zeros(64, np.int32)
    return "probe_algorithms", 1, 64, 0, [a, b, out, n, m], {2: expected}, 0


def hash_cas(random):
    keys = random.permutation(5000)[:600].astype(np.uint32) + 1
    keys = np.concatenate([keys, keys[:300]])
    table, found = np.zeros(1021, np.uint64), np.zeros(1, np.uint32)

    def check(got):
        kept = got[got != 0]
        counts = {int(k) >> 32: int(k) & 0xFFFFFFFF for k in kept}
        wanted, times = np.unique(keys, return_counts=True)
        return len(kept) == wanted.size and counts == dict(zip(wanted, times, strict=True))

    return "probe_algorithms", 8, 128, 0, [keys, table, found, 900, 1021], {1: check, 2: [900]}, 0


def flash_attention(random):
    n = 256
    q, k, v = (normal(random, 2, n, 64).astype(np.float16) for _ in range(3))
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 8
    weights = np.exp(scores - scores.max(2, keepdims=True))
    expected = weights / weights.sum(2, keepdims=True) @ v.astype(np.float64)
    arguments = [q, k, v, np.zeros((2, n, 64), np.float32), n, 0.125]
    return "probe_tiles", (4, 2), 128, 0, arguments, {3: expected}, 3e-3


def welford_layernorm(random):
    x = normal(random, 3, 777) + 5
    wide = x.astype(np.float64)
    scale = np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    expected = (wide - wide.mean(1, keepdims=True)) / scale
    return "probe_tiles", 3, 128, 0, [x, np.zeros_like(x), 777], {1: expected}, 1e-4


def stencil_temporal(random):
    x = normal(random, 300)
    expected = x.astype(np.float64)
    for _ in range(4):
        expected = 0.3 * np.roll(expected, 1) + 0.4 * expected + 0.3 * np.roll(expected, -1)
    return "probe_tiles", 6, 64, 512, [x, np.zeros_like(x), 300, 4], {1: expected}, 1e-5


def winograd_f2x2(random):
    x, w = normal(random, 18, 18), normal(random, 3, 3)
    expected = sum(
        w[i, j].astype(np.float64) * x[i : i + 16, j : j + 16] for i in range(3) for j in range(3)
    )
    return "probe_tiles", 1, (8, 8), 0, [x, w, np.zeros((16, 16), np.float32)], {2: expected}, 1e-4


def nqueens_bits(random):
    return "probe_tiles", 1, 96, 0, [np.zeros(1, np.int32), 8], {0: [92]}, 0


def splitk_semaphore(random):
    a, b = (random.integers(-3, 4, s).astype(np.float32) for s in ((24, 100), (100, 64)))
    arguments = [a, b, np.zeros((24, 64), np.float32), np.zeros(6, np.int32), 64, 100]
    return "probe_blocks", (2, 3, 4), (32, 8), 0, arguments, {2: a @ b, 3: np.zeros(6)}, 0


def lookback_scan_own(random):
    x = bits(random, 5000)
    arguments = [x, np.zeros_like(x), np.zeros(20, np.uint64), np.zeros(1, np.uint32), x.size]
    return "probe_blocks", 20, 256, 0, arguments, {1: np.cumsum(x, dtype=np.uint32)}, 0


def producer_consumer_blocks(random):
    n = 50
    expected = [sum((i * 3 + t) * (i + 1) for i in range(n)) for t in range(32)]
    ring, out = np.zeros(128, np.int32), np.zeros(32, np.int64)
    arguments = [ring, np.zeros(1, np.int32), np.zeros(1, np.int32), out, n]
    return "probe_blocks", 2, 32, 0, arguments, {3: expected}, 0


def persistent_queue(random):
    work = random.integers(0, 300, 40, dtype=np.int32)
    expected = [sum(i * i for i in range(count)) for count in work]
    arguments = [work, np.zeros(40, np.int64), np.zeros(1, np.int32), 40]
    return "probe_blocks", 5, 64, 0, arguments, {1: expected}, 0


CASES = [
    *(sha256, merge_path, topk_bitonic, smith_waterman, levenshtein_u16, hash_cas),
    *(flash_attention, welford_layernorm, stencil_temporal, winograd_f2x2, nqueens_bits),
    *(splitk_semaphore, lookback_scan_own, producer_consumer_blocks, persistent_queue),
]


def run(case):
    source, grid, block, shared, arguments, expected, tolerance = case(np.random.default_rng(7))
    kernel = module(source)[case.__name__]
    on_device = [kw.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments]
    kernel[grid, block, None, shared](*on_device)
    for index, wanted in expected.items():
        got = on_device[index].numpy()
        if callable(wanted):
            assert wanted(got)
        else:
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_equals_the_reference(case):
    run(case)


@pytest.mark.parametrize("case", CASES)
def test_the_checks_find_nothing(case):
    with kw.checks("init", "race", "sync") as report:
        run(case)
    report.raise_if_any()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_in_another_order(case, seed):
    with kw.checks.schedule(seed):
        run(case)
