"""kw.random against plain Python, exact counts, and the moments and tests of each distribution."""

import itertools
import math
import threading

import numpy as np
import pytest
from scipy import stats

import kernwright as kw
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument

FLOATS = ["float16", "bfloat16", "float32", "float64"]
N = 20_011


def philox(block, seed, attempt=0):
    """Ten rounds in Python's own integers."""
    a, b, c, d = block & 0xFFFFFFFF, block >> 32, attempt, 0
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k0, q & 0xFFFFFFFF, (p >> 32) ^ d ^ k1, p & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def wide(x):
    return x.numpy().astype(np.float64)


# ---- the numbers themselves


def test_uniform_numbers_are_those_of_philox():
    seed, offset = 0x123456789ABCDEF0, 2**32 - 2
    generator = kw.random.Generator(seed, offset=offset)
    words = [w for i in range(4) for w in philox(offset + i, seed)]
    expected = np.array([w >> 8 for w in words[:13]], np.float32) * np.float32(2**-24)
    assert np.array_equal(generator.uniform(13).numpy(), expected)
    assert generator.offset == offset + 13
    again = kw.random.Generator(seed, offset=offset).uniform(4, "float64").numpy()
    doubles = [
        ((h << 32 | low) >> 11) * 2.0**-53 for h, low in zip(words[::2], words[1::2], strict=True)
    ]
    assert again.tolist() == doubles[:4]


def test_integers_draw_again_instead_of_favouring_some():
    """A range just above half of all words: nearly half of the draws are drawn again."""
    span, seed = 2**31 + 5, 7
    biased = (2**32 - span) % span
    expected = []
    for i in range(64):
        attempt = 0
        while philox(i // 4, seed, attempt)[i % 4] * span % 2**32 < biased:
            attempt += 1
        expected.append((philox(i // 4, seed, attempt)[i % 4] * span >> 32) - 9)
    got = kw.random.integers(-9, span - 9, 64, seed=seed).numpy()
    assert got.tolist() == expected


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (4,), (5, 7), (1025,)])
def test_shapes_and_a_prefix(shape):
    x = kw.random.normal(shape, seed=5)
    assert x.shape == shape and x.dtype == np.float32
    whole = kw.random.normal(2000, seed=5).numpy()
    assert np.array_equal(x.numpy().reshape(-1), whole[: x.size])


def test_out_in_any_layout():
    whole = kw.random.uniform((6, 10), seed=3).numpy()
    storage = kw.zeros((6, 21))
    for view in (storage[:, 1:11], storage[:, 20:0:-2], storage[::-1, 5:15]):
        assert kw.random.uniform(out=view, seed=3) is view
        assert np.array_equal(view.numpy(), whole)
    misaligned = kw.zeros(61)[1:]
    kw.random.uniform(out=misaligned, seed=3)
    assert np.array_equal(misaligned.numpy(), whole.reshape(-1))
    for dtype in ("int8", "bool", "float16", "float64"):
        place = kw.zeros(100, dtype)[3:98]
        kw.random.bernoulli(0.3, out=place, seed=1)
        expected = kw.random.bernoulli(0.3, 95, seed=1).numpy()
        assert np.array_equal(place.numpy().astype(bool), expected)


# ---- distributions


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(dtype):
    x = wide(kw.random.uniform(N, dtype, low=-2.0, high=3.0, seed=11))
    assert x.min() >= -2 and x.max() < 3
    assert stats.kstest((x + 2) / 5, "uniform").pvalue > 1e-3 or dtype == "bfloat16"
    assert abs(x.mean() - 0.5) < 0.05
    assert (kw.random.uniform(9, dtype, low=4.0, high=4.0, seed=1).numpy() == 4).all()


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 10), ("bfloat16", 7)])
def test_narrow_uniform_numbers_stay_below_their_bound(dtype, digits):
    """Half of the numbers between neighbours round up to the bound, which is not drawn."""
    step = 2.0**-digits
    for high, expected in ((1 + step, {1.0}), (1 + 1.5 * step, {1.0, 1 + step})):
        for bound in (high, kw.asarray(np.full(4000, high))):
            drawn = kw.random.uniform(4000, dtype, low=1.0, high=bound, seed=3)
            assert set(wide(drawn).tolist()) == expected


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(dtype):
    x = wide(kw.random.normal(N, dtype, mean=1.5, std=2.0, seed=2))
    z = (x - 1.5) / 2
    limit = 1e-4 if dtype == "bfloat16" else 1e-2  # of 8 bits: steps show in the test
    assert dtype == "bfloat16" or stats.kstest(z, "norm").pvalue > limit
    assert abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.02
    assert abs((z**3).mean()) < 0.1 and abs((z**4).mean() - 3) < 0.25
    assert abs(np.corrcoef(z[:-1:2], z[1::2])[0, 1]) < 0.03


@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential(dtype):
    x = wide(kw.random.exponential(N, dtype, scale=3.0, seed=4))
    assert x.min() >= 0 and abs(x.mean() / 3 - 1) < 0.04 and abs(x.std() / 3 - 1) < 0.05
    if dtype in ("float32", "float64"):
        assert stats.kstest(x / 3, "expon").pvalue > 1e-3


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.5, 300.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma(dtype, alpha):
    x = wide(kw.random.gamma(alpha, N, dtype, scale=2.0, seed=9))
    assert stats.kstest(x / 2, "gamma", args=(alpha,)).pvalue > 1e-3
    assert abs(x.mean() / (2 * alpha) - 1) < 0.05


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.25, 0.5, 1.0])
def test_bernoulli(p):
    x = kw.random.bernoulli(p, N, seed=8)
    assert x.dtype == np.bool_
    assert stats.binomtest(int(x.numpy().sum()), N, p).pvalue > 1e-3 if 0 < p < 1 else True
    if p in (0.0, 1.0):
        assert (x.numpy() == bool(p)).all()


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 2, "int8"), (-128, 128, "int8"), (-3, 4, "int64"), (0, 256, "uint8"), (5, 6, "uint16"),
     (-(2**31), 2**31, "int32"), (0, 2**64, "uint64"), (-(2**63), 2**63, "int64"),
     (0, 3 * 2**62, "uint64"), (-1, 2**33, "int64")],
)  # fmt: skip
def test_integers(low, high, dtype):
    x = kw.random.integers(low, high, N, dtype, seed=6).numpy()
    assert x.dtype == dtype and int(x.min()) >= low and int(x.max()) < high
    span = high - low
    bins = min(span, 16)
    cells = [(int(v) - low) * bins // span for v in x]
    counts = np.bincount(cells, minlength=bins)
    edges = [-(-i * span // bins) for i in range(bins + 1)]
    share = np.array([(b - a) / span for a, b in itertools.pairwise(edges)])
    assert bins == 1 or stats.chisquare(counts, share * N).pvalue > 1e-4


# ---- orders and choices


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000, 2047, 2048, 2049, 4096, 65537])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_permutations_are_permutations(n, dtype):
    x = kw.random.permutation(n, dtype, seed=12).numpy()
    assert x.dtype == dtype
    assert np.array_equal(np.sort(x), np.arange(n))
    if n > 1000:
        assert (x == np.arange(n)).mean() < 0.01
        assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.1


def test_every_order_of_four_is_as_frequent():
    generator = kw.random.Generator(1)
    drawn = [tuple(generator.permutation(4).numpy()) for _ in range(480)]
    counts = [drawn.count(order) for order in itertools.permutations(range(4))]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_large_permutations_spread_evenly():
    n, cells = 3000, 10
    table = np.zeros((cells, cells), int)
    for seed in range(12):
        x = kw.random.permutation(n, seed=seed).numpy()
        np.add.at(table, (np.arange(n) * cells // n, x * cells // n), 1)
    expected = np.full(cells * cells, 12 * n / cells**2)
    assert stats.chisquare(table.reshape(-1), expected).pvalue > 1e-3


@pytest.mark.parametrize("shape", [(7,), (3000, 3), (5, 0), (6, 2, 5)])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
def test_shuffles_keep_rows(shape, dtype):
    host = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    x = kw.asarray(host)
    order = kw.random.permutation(shape[0], seed=3).numpy()
    assert np.array_equal(kw.random.permutation(x, seed=3).numpy(), host[order])
    kw.random.shuffle(x, seed=3)
    assert np.array_equal(x.numpy(), host[order])
    y = kw.asarray(np.repeat(host, 2, 0))[::-2]
    kw.random.shuffle(y, seed=3)
    assert np.array_equal(y.numpy(), host[::-1][order])


def test_choice():
    x = kw.random.choice(10, (N,), seed=1).numpy()
    assert stats.chisquare(np.bincount(x, minlength=10)).pvalue > 1e-3
    few = kw.random.choice(5000, 100, replace=False, seed=1).numpy()
    assert len(set(few.tolist())) == 100 and few.min() >= 0 and few.max() < 5000
    rows = np.arange(12).reshape(4, 3)
    picked = kw.random.choice(kw.asarray(rows), (2, 5), seed=4)
    assert picked.shape == (2, 5, 3)
    assert all(row.tolist() in rows.tolist() for row in picked.numpy().reshape(-1, 3))
    assert kw.random.choice(4, seed=1).shape == ()
    assert kw.random.choice(0, (0,), seed=1).shape == (0,)


def test_weighted_choice():
    p = np.array([0.1, 0.0, 0.4, 0.2, 0.3, 0.0])
    for given in (p, p.tolist(), kw.asarray(p), kw.asarray((8 * p).astype(np.float32))):
        counts = np.bincount(kw.random.choice(6, N, p=given, seed=2).numpy(), minlength=6)
        assert counts[1] == counts[5] == 0
        assert stats.chisquare(counts[p > 0], N * p[p > 0]).pvalue > 1e-3
    many = np.random.default_rng(0).random(20_000)
    many /= many.sum()
    x = kw.random.choice(many.size, N, p=many, seed=1).numpy()
    assert abs(many[x].mean() / (many**2).sum() - 1) < 0.02
    half = np.bincount((x * 10) // many.size, minlength=10)
    assert stats.chisquare(half, N * many.reshape(10, -1).sum(1)).pvalue > 1e-3


def test_weighted_choice_without_replacement():
    p = np.array([0.5, 0.2, 0.2, 0.1, 0.0])
    generator = kw.random.Generator(3)
    drawn = np.array([generator.choice(5, 2, replace=False, p=p).numpy() for _ in range(400)])
    assert (drawn[:, 0] != drawn[:, 1]).all() and drawn.max() < 4
    exact = {(a, b): p[a] * p[b] / (1 - p[a]) for a, b in itertools.permutations(range(4), 2)}
    counts = [(drawn == pair).all(1).sum() for pair in exact]
    assert stats.chisquare(counts, 400 * np.array(list(exact.values()))).pvalue > 1e-3
    n = 9000
    all_of_them = kw.random.choice(n, n, replace=False, p=np.full(n, 1 / n), seed=1).numpy()
    assert np.array_equal(np.sort(all_of_them), np.arange(n))


# ---- generators


@pytest.mark.parametrize("replace", [True, False])
def test_a_weighted_choice_moves_the_offset_behind_what_it_read(replace):
    """It draws a word for each pick, or for each weight without replacement."""
    for n, count in ((9, 2), (9, 9), (2, 9)):
        if replace or count <= n:
            generator = kw.random.Generator(1, offset=5)
            generator.choice(n, count, replace, np.full(n, 1 / n))
            assert generator.offset == 5 + max(n, count)


@pytest.mark.parametrize("on_device", [False, True])
def test_offsets_begin_again_at_two_to_the_64(on_device):
    generator = kw.random.Generator(7, offset=2**64 - 3, on_device=on_device)
    words = [w for block in (2**64 - 3, 2**64 - 2, 2**64 - 1, 0) for w in philox(block, 7)]
    expected = np.array([w >> 8 for w in words], np.float32) * np.float32(2**-24)
    assert np.array_equal(generator.uniform(16).numpy(), expected)
    assert generator.offset == (2**64 - 3 if on_device else 13)
    again = kw.random.Generator(7, offset=13).uniform(8).numpy()
    assert np.array_equal(generator.uniform(8).numpy(), again)
    with pytest.raises(ArgumentRangeError, match="offset"):
        kw.random.Generator(7, offset=2**64)


def test_a_generator_goes_on():
    one, two = kw.random.Generator(5), kw.random.Generator(5)
    first, second = one.normal(10).numpy(), one.normal(10).numpy()
    assert not np.intersect1d(first, second).size
    assert np.array_equal(two.normal(10).numpy(), first)
    assert np.array_equal(two.normal(10).numpy(), second)
    assert two.seed == 5 and two.offset == 20 and "seed 5" in repr(two)
    assert kw.random.Generator().seed != kw.random.Generator().seed


def test_the_default_generator():
    kw.random.seed(3)
    a, b = kw.random.uniform(5).numpy(), kw.random.uniform(5).numpy()
    kw.random.seed(3)
    assert np.array_equal(kw.random.uniform(5).numpy(), a)
    assert np.array_equal(kw.random.uniform(5).numpy(), b)
    assert kw.random.default_generator().offset == 10


def test_threads_share_no_numbers():
    generator = kw.random.Generator(1)
    found = []

    def draw():
        for _ in range(20):
            found.extend(generator.integers(0, 2**63, 16).numpy().tolist())

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 4 * 20 * 16


def test_graphs_repeat_or_go_on():
    stream, graph = kw.Stream(), kw.Graph()
    fixed, moving = kw.random.Generator(1), kw.random.Generator(1, on_device=True)
    same, new = kw.empty(100), kw.empty(100)
    expected = kw.random.Generator(1).normal((5, 100)).numpy()
    kw.synchronize()
    with graph.capture(stream):
        fixed.normal(out=same)
        moving.normal(out=new)
    for i in range(3):
        graph.launch(stream)
        stream.synchronize()
        assert np.array_equal(same.numpy(), expected[0])
        # 100 elements are 25 blocks of four, and the offset counts elements.
        own = kw.random.Generator(1, offset=100 * i).normal(100).numpy()
        assert np.array_equal(new.numpy(), own)
    assert moving.counter.numpy().tolist() == [300]


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        for dtype in ("float16", "float32"):
            for make in (kw.random.uniform, kw.random.normal, kw.random.exponential):
                make(333, dtype, seed=1)
        kw.random.gamma(0.5, 100, seed=1)
        kw.random.bernoulli(0.5, 1000, seed=1)
        kw.random.integers(5, shape=99, seed=1)
        kw.random.integers(2**40, shape=99, seed=1)
        kw.random.permutation(100, seed=1)
        kw.random.permutation(kw.zeros((3000, 2)), seed=1)
        p = np.full(2100, 1 / 2100)
        kw.random.choice(2100, 50, p=p, seed=1)
        kw.random.choice(2100, 50, replace=False, p=p, seed=1)
        kw.random.Generator(1, on_device=True).uniform(10)
        kw.synchronize()
    assert not report.findings, str(report)


# ---- wrong calls


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: kw.random.normal(3, "int32", seed=1), InvalidArgument, "not int32"),
        (lambda: kw.random.normal(3, std=-1.0, seed=1), InvalidArgument, "deviation"),
        (lambda: kw.random.uniform(3, low=2.0, high=1.0, seed=1), InvalidArgument, "high - low"),
        (lambda: kw.random.uniform(3, high=math.inf, seed=1), InvalidArgument, "finite"),
        (lambda: kw.random.gamma(0.0, 3, seed=1), InvalidArgument, "above 0"),
        (lambda: kw.random.bernoulli(1.5, 3, seed=1), InvalidArgument, "between 0 and 1"),
        (lambda: kw.random.integers(3, 3, 4, seed=1), InvalidArgument, "no whole number"),
        (lambda: kw.random.integers(0, 300, 4, "uint8", seed=1), ArgumentRangeError, "0 ... 299"),
        (lambda: kw.random.integers(0, 3, 4, "float32", seed=1), InvalidArgument, "integer"),
        (lambda: kw.random.integers(0.5, 3, 4, seed=1), ArgumentError, "ints"),
        (lambda: kw.random.normal(3, seed=-1), ArgumentRangeError, "seed"),
        (lambda: kw.random.normal(3, seed="a"), ArgumentError, "seed"),
        (lambda: kw.random.normal(out=np.zeros(3), seed=1), ArgumentError, "out"),
        (lambda: kw.random.normal((4,), out=kw.zeros(3), seed=1), InvalidArgument, "(4,)"),
        (lambda: kw.random.permutation(5, "float32", seed=1), InvalidArgument, "int32 or int64"),
        (lambda: kw.random.permutation(np.zeros(3), seed=1), ArgumentError, "asarray"),
        (lambda: kw.random.choice(0, 3, seed=1), InvalidArgument, "nothing"),
        (lambda: kw.random.choice(3, 4, replace=False, seed=1), InvalidArgument, "4 of 3"),
        (lambda: kw.random.choice(3, 4, p=[0.5, 0.5], seed=1), InvalidArgument, "(2,)"),
        (lambda: kw.random.choice(2, 4, p=[0.5, 0.6], seed=1), InvalidArgument, "1.1"),
        (lambda: kw.random.choice(2, 4, p=[1.5, -0.5], seed=1), InvalidArgument, "negative"),
        (lambda: kw.random.choice(2, 2, False, [1.0, 0.0], seed=1), InvalidArgument, "above 0"),
    ],
)
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
