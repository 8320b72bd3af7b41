"""kw.nn.sample and greedy against the definition in NumPy, and their chances by chi-square."""

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

import kernwright as kw
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument

DRAWS = 300


def chances(row, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, penalty=1.0, previous=()):
    """The probability of each token, by sorting."""
    x = row.astype(np.float64)
    x = np.where(np.isnan(x), -np.inf, x)
    for token in set(previous):
        if 0 <= token < x.size:
            x[token] = x[token] / penalty if x[token] > 0 else x[token] * penalty
    p = np.exp((x - x.max()) / temperature)
    order = np.lexsort((np.arange(x.size), -x))
    if top_k:
        order = order[:top_k]
    sums = (p[order] / p[order].sum()).cumsum()
    if top_p < 1:
        order = order[: np.searchsorted(sums, top_p - 1e-9) + 1]
    order = order[p[order] >= min_p * (1 - 1e-6)]
    kept = np.zeros(x.size)
    kept[order] = p[order]
    return kept / kept.sum()


def require_chances(tokens, p):
    counts = np.bincount(tokens.reshape(-1), minlength=p.size)
    assert counts.size == p.size and counts[p == 0].sum() == 0
    often = p * tokens.size >= 5
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(p[often], p[~often].sum()) * tokens.size
    used = expected > 1e-6
    assert observed[~used].sum() == 0
    if used.sum() > 1:
        total = observed[used].sum() / expected[used].sum()
        assert stats.chisquare(observed[used], expected[used] * total).pvalue > 1e-4


def repeated(row, count=DRAWS):
    return kw.asarray(np.tile(row, (count, 1)))


def logits(size, spread=2.0, seed=0):
    return (np.random.default_rng(seed).standard_normal(size) * spread).astype(np.float32)


OPTIONS = {
    "all": {},
    "temperature": {"temperature": 0.5},
    "hot": {"temperature": 3.0},
    "top_k": {"top_k": 5},
    "top_k 1": {"top_k": 1},
    "more than there are": {"top_k": 10**6, "top_p": 1.0},
    "top_p": {"top_p": 0.7},
    "top_p 0": {"top_p": 0.0},
    "min_p": {"min_p": 0.1},
    "both": {"top_k": 20, "top_p": 0.8, "temperature": 0.8},
    "everything": {"top_k": 30, "top_p": 0.9, "min_p": 0.05, "temperature": 1.5},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("size", [7, 1500])
def test_chances(size, options):
    row = logits(size)
    tokens = kw.nn.sample(repeated(row), seed=1, **options)
    assert tokens.shape == (DRAWS,) and tokens.dtype == np.int64
    require_chances(tokens.numpy(), chances(row, **options))


def test_one_hundred_thousand_draws(device):
    """Fewer on the simulated device, where each takes a block of 1024 threads."""
    row, rounds = logits(5, 1.0), 5 if device.is_simulated else 50
    x = repeated(row, 2000)
    tokens = [kw.nn.sample(x, seed=3, step=step).numpy() for step in range(rounds)]
    counts = np.bincount(np.concatenate(tokens), minlength=5)
    assert stats.chisquare(counts, chances(row) * rounds * 2000).pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_logits(dtype):
    row = logits(1500).astype(getattr(ml_dtypes, dtype, dtype))
    tokens = kw.nn.sample(repeated(row, 200), seed=2, top_k=8, top_p=0.9)
    require_chances(tokens.numpy(), chances(row.astype(np.float32), top_k=8, top_p=0.9))


def test_ties_fall_to_the_lower_token():
    row = np.zeros(9000, np.float32)
    tokens = kw.nn.sample(repeated(row, 100), seed=1, top_k=10).numpy()
    assert set(tokens.tolist()) == set(range(10))
    nucleus = kw.nn.sample(repeated(row, 100), seed=1, top_p=0.00095).numpy()
    assert set(nucleus.tolist()) == set(range(9))
    row[4000:] = 1.0
    both = kw.nn.sample(repeated(row, 100), seed=1, top_k=4000, top_p=0.00095).numpy()
    assert set(both.tolist()) == {4000, 4001, 4002, 4003}
    row[:] = np.where(np.arange(row.size) % 2 == 0, 0.0, -0.0)
    assert set(kw.nn.sample(repeated(row, 50), seed=1, top_k=3).numpy().tolist()) == {0, 1, 2}


def test_more_ties_than_fit_a_list():
    """The threshold lies among many equal logits that a hair separates from others."""
    row = np.full(12_000, 1.0, np.float32)
    row[1::2] = np.nextafter(np.float32(1), np.float32(0))
    tokens = kw.nn.sample(repeated(row, 60), seed=1, top_k=6100).numpy()
    assert (tokens[tokens % 2 == 1] < 200).all() and (tokens % 2 == 0).mean() > 0.9


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(1,), (3,), (4, 1), (5, 1000), (2, 3, 33), (2, 16_384), (0, 5)])
def test_greedy(shape, dtype):
    x = logits(shape).astype(getattr(ml_dtypes, dtype, dtype))
    tokens = kw.nn.greedy(kw.asarray(x))
    assert tokens.shape == shape[:-1]
    assert np.array_equal(tokens.numpy(), x.astype(np.float32).argmax(-1))
    sampled = kw.nn.sample(kw.asarray(x), temperature=0.0, seed=5)
    assert np.array_equal(sampled.numpy(), tokens.numpy())


def test_special_logits():
    rows = np.zeros((6, 8), np.float32)
    rows[0] = -np.inf
    rows[1] = np.nan
    rows[2, 3], rows[2, 5] = np.inf, np.inf
    rows[3, :7] = -np.inf
    rows[4, 2], rows[4, 4] = np.nan, 3
    rows[5] = np.float32(3e38)
    x = kw.asarray(rows)
    assert kw.nn.greedy(x).numpy().tolist() == [0, 0, 3, 7, 4, 0]
    seen = [set() for _ in rows]
    for step in range(30):
        for place, token in zip(seen, kw.nn.sample(x, seed=1, step=step).numpy(), strict=True):
            place.add(int(token))
    assert seen[0] == seen[1] == {0} and seen[2] == {3, 5} and seen[3] == {7}
    assert 2 not in seen[4] and 4 in seen[4] and len(seen[5]) > 4


def test_repetition_penalty():
    row = logits(40)
    previous = np.array([1, 5, 5, 39, -1, 100, 7])
    for dtype in (np.int32, np.int64, np.int16):
        given = kw.asarray(np.tile(previous, (DRAWS, 1)).astype(dtype))
        tokens = kw.nn.sample(repeated(row), seed=4, repetition_penalty=1.8, previous=given)
        require_chances(tokens.numpy(), chances(row, penalty=1.8, previous=previous.tolist()))
    top = int(row.argmax())
    given = kw.asarray(np.full((1, 3), top))
    second = kw.nn.sample(kw.asarray(row[None]), temperature=0.0, seed=0, repetition_penalty=1e6,
                          previous=given)  # fmt: skip
    assert int(second.numpy()[0]) == int(np.argsort(row)[-2])


def test_values_for_each_row():
    row = logits(300)
    options = [OPTIONS["all"], OPTIONS["both"], {"temperature": 0.0}, OPTIONS["everything"]]
    names = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    arrays = {
        name: kw.asarray(np.array([o.get(name, default) for o in options] * 100))
        for name, default in names.items()
    }
    tokens = kw.nn.sample(repeated(row, 400), seed=9, **arrays).numpy().reshape(100, 4)
    for i, each in enumerate(options):
        if each.get("temperature") == 0:
            assert (tokens[:, i] == row.argmax()).all()
        else:
            require_chances(tokens[:, i], chances(row, **each))


def test_seeds_and_layouts():
    x = kw.asarray(logits((20, 64)))
    first = kw.nn.sample(x, seed=1).numpy()
    assert np.array_equal(kw.nn.sample(x, seed=1).numpy(), first)
    assert not np.array_equal(kw.nn.sample(x, seed=2).numpy(), first)
    assert not np.array_equal(kw.nn.sample(x, seed=1, step=1).numpy(), first)
    kw.random.seed(5)
    default = kw.nn.sample(x).numpy()
    assert not np.array_equal(kw.nn.sample(x).numpy(), default)
    kw.random.seed(5)
    assert np.array_equal(kw.nn.sample(x).numpy(), default)
    # The same numbers in other layouts of memory draw the same tokens where the packs are alike.
    strided = kw.zeros((20, 128))
    strided[:, 64:] = x
    assert np.array_equal(kw.nn.sample(strided[:, 64:], seed=1).numpy(), first)
    for view in (kw.asarray(x.numpy().T.copy()).T, kw.asarray(x.numpy()[::-1].copy())[::-1]):
        assert np.array_equal(kw.nn.sample(view, seed=1).numpy(), first)
    shifted = kw.zeros(20 * 64 + 1)[1:].reshape(20, 64)
    shifted[...] = x
    assert np.array_equal(kw.nn.sample(shifted, seed=1).numpy(), first)


def test_out_and_a_counter_in_a_graph():
    row = logits(200, 0.5)
    x = repeated(row, 16)
    counter, out = kw.zeros(1, "uint64"), kw.empty(16, "int32")
    expected = [kw.nn.sample(x, seed=7, step=step).numpy() for step in range(3)]
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        assert kw.nn.sample(x, seed=7, counter=counter, out=out) is out
    for tokens in expected:
        graph.launch(stream)
        stream.synchronize()
        assert np.array_equal(out.numpy(), tokens)
    assert counter.numpy().tolist() == [3]


def test_long_rows_in_a_graph():
    x = kw.asarray(logits((2, 17_000), 1.0))
    counter, out = kw.zeros(1, "uint64"), kw.empty(2, "int32")
    expected = [kw.nn.sample(x, seed=7, step=step, top_p=0.95).numpy() for step in range(3)]
    stream, graph = kw.Stream(), kw.Graph()
    kw.synchronize()
    with graph.capture(stream):
        kw.nn.sample(x, seed=7, counter=counter, out=out, top_p=0.95)
    for tokens in expected:
        graph.launch(stream)
        stream.synchronize()
        assert np.array_equal(out.numpy(), tokens)


def test_a_large_vocabulary():
    row = logits(128_256, 1.0)
    tokens = kw.nn.sample(repeated(row, 2), seed=1, top_k=50, top_p=0.9).numpy()
    assert set(tokens.tolist()) <= set(np.flatnonzero(chances(row, top_k=50, top_p=0.9)).tolist())
    assert kw.nn.greedy(kw.asarray(row)).numpy() == row.argmax()


SPREAD = {
    "all": {},
    "min_p": {"min_p": 0.02},
    "few": {"top_k": 40, "top_p": 0.9},
    "many": {"top_k": 3000, "top_p": 0.95, "temperature": 0.8},
    "nucleus": {"top_p": 0.8},
    "greedy": {"temperature": 0.0},
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("options", SPREAD.values(), ids=SPREAD)
def test_rows_spread_over_blocks_draw_as_one_block_does(options, dtype):
    """Tokens of no chance behind a row make it a long one, which draws the same tokens."""
    rows = logits((3, 16_384)).astype(getattr(ml_dtypes, dtype, dtype))
    longer = np.full((3, 50_003), -np.inf, rows.dtype)
    longer[:, :16_384] = rows
    ties = np.round(longer.astype(np.float32))
    previous = kw.asarray(np.array([[1, 16_383, -1, 40]] * 3))
    for step in range(3):
        both = [kw.nn.sample(kw.asarray(x), seed=3, step=step, repetition_penalty=1.5,
                             previous=previous, **options) for x in (rows, longer)]  # fmt: skip
        assert np.array_equal(both[0].numpy(), both[1].numpy())
        both = [kw.nn.sample(kw.asarray(x), seed=3, step=step, **options)
                for x in (ties[:, :16_384], ties)]  # fmt: skip
        assert np.array_equal(both[0].numpy(), both[1].numpy())


@pytest.mark.parametrize("options", SPREAD.values(), ids=SPREAD)
def test_tokens_of_long_rows_are_among_those_kept(options):
    """Any place of a row may be drawn, and no other than those that the definition keeps."""
    row = np.random.default_rng(1).permutation(logits(40_000, 1.0))
    greedy = options.get("temperature") == 0
    kept = row == row.max() if greedy else chances(row, **options) > 0
    tokens = kw.nn.sample(repeated(row, 24), seed=1, **options).numpy()
    assert kept[tokens].all()
    if kept.sum() > 1000:
        assert tokens.min() < 10_000 and tokens.max() > 30_000 and len(set(tokens)) > 15


def test_long_rows_with_values_for_each():
    """Some rows take one block, others several, in one launch."""
    row = logits(20_000)
    arrays = {
        "temperature": np.array([0.0, 1.0, 1.0, 2.0]), "top_k": np.array([0, 5, 10_000, 0]),
        "top_p": np.array([1.0, 1.0, 0.9, 1.0]),
    }  # fmt: skip
    given = {name: kw.asarray(values) for name, values in arrays.items()}
    for step in range(3):
        tokens = kw.nn.sample(repeated(row, 4), seed=2, step=step, **given).numpy()
        for i in range(4):
            alone = {name: values.tolist() for name, values in arrays.items()}
            one = {name: values[i] for name, values in alone.items()}
            expected = kw.nn.sample(repeated(row, 4), seed=2, step=step, **one).numpy()[i]
            assert tokens[i] == expected
    assert tokens[0] == row.argmax()


def test_special_values_in_long_rows():
    rows = np.full((4, 20_001), -np.inf, np.float32)
    rows[1] = np.nan
    rows[1, 20_000] = -3
    rows[2, [777, 19_999]] = np.inf
    rows[3, 12_345] = 3e38
    for options in ({}, {"top_k": 3}, {"top_p": 0.5}, {"temperature": 0.0}):
        tokens = kw.nn.sample(kw.asarray(rows), seed=1, **options).numpy()
        assert tokens[[0, 1, 3]].tolist() == [0, 20_000, 12_345] and tokens[2] in (777, 19_999)


def test_every_kernel_under_all_checks(sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        long = kw.asarray(logits((1, 17_001)))
        for options in ({}, {"top_k": 9}, {"top_p": 0.9, "min_p": 0.01}):
            kw.nn.sample(long, seed=1, previous=kw.zeros((1, 2), "int64"), repetition_penalty=2.0,
                         **options)  # fmt: skip
        x = kw.asarray(logits((2, 3001)))
        previous = kw.zeros((2, 4), "int32")
        counter = kw.zeros(1, "uint64")
        kw.nn.sample(x, top_k=40, top_p=0.9, min_p=0.01, repetition_penalty=1.2,
                     previous=previous, seed=1, counter=counter)  # fmt: skip
        kw.nn.sample(kw.zeros((1, 4000)), top_k=30, seed=1)
        kw.nn.greedy(x)
        kw.synchronize()
    assert not report.findings, str(report)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: kw.nn.sample(kw.ones((2, 3), "float64")), InvalidArgument, "not float64"),
        (lambda: kw.nn.sample(kw.ones((2, 0))), InvalidArgument, "(2, 0)"),
        (lambda: kw.nn.sample(kw.ones(())), InvalidArgument, "no axis"),
        (lambda: kw.nn.sample(np.ones((2, 3))), ArgumentError, "asarray"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), top_k=-1), ArgumentRangeError, "top_k"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), temperature=-1.0), InvalidArgument,
         "temperature is finite and not negative, got -1.0"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), temperature=float("inf")), InvalidArgument, "inf"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), temperature=float("nan")), InvalidArgument, "nan"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), top_p=1.5), InvalidArgument,
         "top_p is from 0 to 1, got 1.5"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), min_p=-0.5), InvalidArgument, "min_p is from 0"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), repetition_penalty=0.0), InvalidArgument,
         "repetition_penalty is finite and above 0"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), top_k=1.5), ArgumentError, "top_k"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), seed="a"), ArgumentError, "seed is an int"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), step=-1), ArgumentRangeError, "step is from 0"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), top_p=-0.5), InvalidArgument, "top_p"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), min_p="x"), ArgumentError, "min_p"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), temperature=kw.ones(3)), InvalidArgument, "2 rows"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), repetition_penalty=0.0), InvalidArgument, "penalty"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), previous=kw.ones((3, 2), "int32")), InvalidArgument,
         "(3, 2)"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), previous=kw.ones((2, 2))), InvalidArgument,
         "integer"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), out=kw.zeros(3, "int32")), InvalidArgument, "(3,)"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), out=kw.zeros(2)), InvalidArgument, "int32 or int64"),
        (lambda: kw.nn.sample(kw.ones((2, 3)), counter=kw.zeros(2, "int64")), InvalidArgument,
         "counter"),
        (lambda: kw.nn.greedy(kw.ones((2, 3)), out=[1, 2]), ArgumentError, "out"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("tokens", [300, 40_000])
def test_with_a_seed_for_each_row_a_row_depends_on_its_seed_and_step_alone(tokens):
    x = np.tile(logits(tokens, 1.0), (40, 1))
    seeds = np.arange(40, dtype=np.uint64) % 20 + (1 << 63)
    steps = np.arange(40, dtype=np.int32) % 20
    all_seeds, all_steps = kw.asarray(seeds), kw.asarray(steps)
    drawn = kw.nn.sample(kw.asarray(x), seed=all_seeds, step=all_steps).numpy()
    np.testing.assert_array_equal(drawn[:20], drawn[20:])
    assert len(set(drawn.tolist())) > 10
    order = np.random.default_rng(1).permutation(40)[:7]
    some = kw.nn.sample(
        kw.asarray(x[order]), seed=kw.asarray(seeds[order].astype(np.int64)),
        step=kw.asarray(steps[order]),
    )  # fmt: skip
    np.testing.assert_array_equal(some.numpy(), drawn[order])
    same = kw.nn.sample(kw.asarray(x), seed=all_seeds * 0 + 5, step=all_steps * 0).numpy()
    assert len(set(same.tolist())) == 1
    later = kw.nn.sample(kw.asarray(x), seed=all_seeds * 0 + 5, step=all_steps).numpy()
    assert len(set(later.tolist())) > 5


def test_rows_with_seeds_and_steps_of_their_own_have_the_chances():
    row = logits(40)
    seeds = kw.asarray(np.arange(DRAWS, dtype=np.int64))
    require_chances(kw.nn.sample(repeated(row), seed=seeds).numpy(), chances(row))
    steps = kw.asarray(np.arange(DRAWS, dtype=np.int32))
    one = kw.asarray(np.full(DRAWS, 3, np.int64))
    require_chances(kw.nn.sample(repeated(row), seed=one, step=steps).numpy(), chances(row))


def test_seeds_and_steps_of_rows_that_do_not_fit_are_refused():
    x = repeated(logits(10), 3)
    with pytest.raises(InvalidArgument, match="seed is one number or one for each of 3 rows"):
        kw.nn.sample(x, seed=kw.asarray(np.arange(2)))
    with pytest.raises(InvalidArgument, match="uint64 or int64, not float32"):
        kw.nn.sample(x, seed=kw.ones(3))
    with pytest.raises(InvalidArgument, match="step is one number or one for each of 3 rows"):
        kw.nn.sample(x, seed=1, step=kw.zeros(4, "int32"))
