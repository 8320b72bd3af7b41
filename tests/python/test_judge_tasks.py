"""Tasks of the judge: inputs from properties, and contradictory or useless tasks."""

import numpy as np
import pytest
from judge_tasks import AFFINE, GOOD, affine

import kernwright as kw
from kernwright._judging.inputs import VALUES


@pytest.fixture(scope="module")
def judge():
    with kw.Judge(2) as made:
        yield made


def test_inputs_are_drawn_from_properties():
    inputs = kw.Inputs(
        x="float32[n, 3]",
        i="int8[n]",
        b="bool[n]",
        h="bfloat16[n]",
        a="float64",
        n="size",
        k=7,
        most=500,
        values=("normal", "special", "denormal"),
    )
    sizes = set()
    for case in range(12):
        x, i, b, h, a, n, k = inputs(1, case)
        assert x.shape == (n, 3) and i.shape == b.shape == h.shape == (n,)
        assert (x.dtype, i.dtype, b.dtype, h.dtype.name) == ("f4", "i1", "?", "bfloat16")
        assert isinstance(a, np.float64) and k == 7 and 1 <= n <= 500
        sizes.add(n)
        again = inputs(1, case)
        assert np.array_equal(x, again[0], equal_nan=True) and n == again[5]
    assert {1, 500} <= sizes and len(sizes) > 5
    assert any(np.isnan(inputs(1, case)[0]).any() for case in (1, 4, 7))
    assert (np.abs(inputs(1, 2)[0]) < 1.2e-38).all()
    every = kw.Inputs(
        a="float32", c="complex64", x="float16[n, 2, n]", e="float32[]", n="size", most=9,
        values=list(VALUES),
    )  # fmt: skip
    for case in range(2 * len(VALUES)):
        a, c, x, e, n = every(3, case)
        assert (a.dtype, c.dtype, x.shape, e.shape) == ("f4", "c8", (n, 2, n), ())
    for wrong in ({"x": "float32[m]"}, {"x": "flaot32[3]"}, {"x": 3, "values": ["odd"]}):
        with pytest.raises(kw.InvalidArgument):
            kw.Inputs(**wrong)
    with pytest.raises(kw.ArgumentError):
        kw.Inputs(x=[1, 2])
    for name in ("most", "least", "most_integer"):
        with pytest.raises(kw.ArgumentError, match=f"{name}= is an int"):
            kw.Inputs(n="size", **{name: "9"})
        for wrong in (-1, 1 << 63):
            with pytest.raises(kw.InvalidArgument, match=f"{name}= is between"):
                kw.Inputs(n="size", **{name: wrong})
    drawn = kw.Inputs(x="int64[4096]", most_integer=1 << 40)(1, 0)[0]
    assert 1 << 39 < abs(drawn).max() <= 1 << 40
    with pytest.raises(kw.InvalidArgument, match="'N', which is none of"):
        kw.Inputs(n="size", most={"N": 5})


def in_runs(values, length):
    """Whether aligned tiles of that length have equal elements each."""
    whole = values[: values.size // length * length].reshape(-1, length)
    return bool((whole == whole[:, :1]).all())


@pytest.mark.parametrize("case", [0, 3])
def test_arrays_have_tiles_of_equal_elements(case):
    inputs = kw.Inputs(x="float32[n]", i="int16[n]", b="bool[n]", n="size", least=900, most=1100)
    drawn = list(zip(*(inputs(seed, case)[:3] for seed in range(0, 80, 2)), strict=True))
    for arrays in drawn:
        tiled = [values for values in arrays if in_runs(values, 32)]
        assert 4 <= len(tiled) < 30
        assert sum(np.ptp(values.astype(int)) > 0 for values in tiled) >= 3
    matrices = kw.Inputs(x="float32[n, n]", b="bool[n, n]", n="size", least=64, most=64)
    for seed in range(0, 80, 2):
        mask = matrices(seed, case)[1]
        assert mask.any(axis=1).all()  # No reference divides by the length of an empty row.


def test_arrays_of_integers_are_sorted_or_have_one_sign():
    inputs = kw.Inputs(x="int32[n]", m="int8[8, 32]", u="uint8[n]", n="size", least=300, most=300)
    for drawn in zip(*(inputs(seed, 2)[:3] for seed in range(0, 32, 2)), strict=True):
        steps = [np.diff(values.astype(int), axis=-1) for values in drawn]
        assert 2 <= sum((step >= 0).all() for step in steps) <= 8
        assert 2 <= sum((step <= 0).all() for step in steps) <= 8
        assert all(abs(values.astype(int)).max() <= 100 for values in drawn)
    for place in (0, 1):
        drawn = [inputs(seed, 2)[place] for seed in range(0, 32, 2)]
        assert 2 <= sum((values >= 0).all() for values in drawn) <= 8
        assert 2 <= sum((values <= 0).all() for values in drawn) <= 8


def test_special_numbers_have_both_signs():
    x = kw.Inputs(x="float32[n]", n="size", most=4000, values=["special"])(0, 0)[0]
    for special in (np.isnan(x), np.isinf(x)):
        assert np.signbit(x[special]).any() and not np.signbit(x[special]).all()


def test_a_smallest_size_beyond_the_largest_is_the_largest():
    inputs = kw.Inputs(x="float32[n]", n="size", m="size", least=10, most={"n": 5, "m": 20})
    drawn = [inputs(seed, case)[1:] for seed in range(3) for case in range(6)]
    assert {n for n, _ in drawn} == {5}
    assert {10, 20} <= {m for _, m in drawn} and all(10 <= m <= 20 for _, m in drawn)


def test_the_first_the_middle_and_the_last_element_are_not_drawn_anew():
    """Of two inputs that differ in a part: a kernel cannot tell them apart by these elements."""
    inputs = kw.Inputs(x="float32[n]", n="size", least=64, most=64, values=("normal",))
    for seed in range(0, 80, 2):
        x, other = inputs(seed, 0)[0], inputs(seed + 1, 0)[0]
        assert np.count_nonzero(x != other) == 16
        assert (x == other)[[0, 32, 63]].all()


def test_pairs_of_numbers_are_complex_ones(judge):
    """float2 takes an array of complex numbers, as in a launch."""
    text = """__global__ void times(const float2* x, float2* y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = make_float2(x[i].x * x[i].x - x[i].y * x[i].y, 2 * x[i].x * x[i].y);
    }"""
    task = kw.Task(
        entry="times", signature="const float2* x, float2* y, int n",
        inputs=kw.Inputs(x="complex64[n]", y="complex64[n]", n="size", most=9, values=("normal",)),
        reference=lambda x, y, n: (None, x.astype(np.complex128) ** 2, None), rtol=1e-4, atol=1e-4,
    )  # fmt: skip
    assert judge.judge(text, task).accepted
    verdict = judge.judge(text.replace("2 * x[i].x *", "x[i].x *"), task)
    assert verdict.status == "wrong"


@pytest.mark.parametrize("seed", [0, 4])
def test_a_kernel_may_add_though_a_case_adds_next_to_nothing(judge, seed):
    def inputs(seed, case):
        x = np.random.default_rng([seed, case]).standard_normal(64).astype(np.float32)
        return x * np.float32(1e-20 if case % 2 else 1), np.zeros(1, np.float32), 64

    text = """__global__ void total(const float* x, float* sum, int n) {
      if (threadIdx.x < n) atomicAdd(sum, x[threadIdx.x]);
    }"""
    task = kw.Task(
        entry="total", signature="const float* x, float* sum, int n", inputs=inputs,
        reference=lambda x, sum, n: (None, [x.sum(dtype=np.float64)], None), cases=4, atol=1e-4,
    )  # fmt: skip
    verdict = judge.judge(text, task, seed=seed)
    assert verdict.accepted, str(verdict)


@pytest.mark.parametrize("dtype", ["float32", "int16", "bfloat16", "complex64"])
def test_inputs_of_neighbouring_seeds_have_elements_in_common(dtype):
    inputs = kw.Inputs(
        x=f"{dtype}[n]", m=f"{dtype}[n, 2]", n="size", most=400, values=("normal", "uniform")
    )
    for case in (0, 3, 7):
        (x, m, n), (other, matrix, count) = inputs(6, case), inputs(7, case)
        assert n == count
        for one, two in ((x, other), (m.reshape(-1), matrix.reshape(-1))):
            for at in (0, len(one) // 2, -1):
                assert one[at] == two[at]
            changed = np.flatnonzero(one != two)
            assert len(one) / 8 < len(changed) <= len(one) // 4
            assert changed[-1] - changed[0] < len(one) // 4
        assert not np.array_equal(inputs(8, case)[0][:8], x[:8])
    for seed in range(0, 400, 2):  # parts that begin anywhere
        for x, other in zip(inputs(seed, 2)[:2], inputs(seed + 1, 2)[:2], strict=True):
            one, two = x.reshape(-1), other.reshape(-1)
            places = (0, len(one) // 2, -1) if len(one) >= 8 else ()
            assert all(one[at] == two[at] for at in places)
    assert not np.array_equal(inputs(6, 1)[1], inputs(7, 1)[1])  # of two elements


def drawn_sizes(kind, most=5000):
    """Of cases with this place among eight, beyond the largest and the smallest."""
    inputs = kw.Inputs(x="float32[n]", n="size", most=most)
    return {inputs(seed, 8 + kind)[1] for seed in range(0, 800, 2)}


def test_sizes_lie_around_the_edges_of_tiles():
    edges = (32, 128, 256, 512)
    near = {edge + step for edge in edges for step in (-1, 0, 1)}
    assert drawn_sizes(2, most=600) == near
    assert kw.Inputs(x="float32[n]", n="size", most=20)(1, 2)[1] in (19, 20)


def test_sizes_have_all_residues_and_magnitudes():
    """A kernel that is wrong for a class of sizes meets some of it."""
    assert len(drawn_sizes(0) | drawn_sizes(3)) > 600
    few, tiles = drawn_sizes(1) | drawn_sizes(4), drawn_sizes(5)
    beside = drawn_sizes(6) | drawn_sizes(7)
    assert set(range(1, 17)) <= few and len(few) > 150 and max(few) <= 256
    assert {1 << i for i in range(13)} <= tiles
    assert {n for n in tiles if n > 2000 and n % 1024 == 0}
    for tile in (128, 256, 512, 1024):
        residues = {n % tile for n in beside if n > 1025}
        assert {1, tile - 1} <= residues and len(residues) > 30
        assert residues & set(range(2, 31)) and residues & set(range(33, tile // 2))
    for kind in range(8):
        assert all(1 <= n <= 5000 for n in drawn_sizes(kind))


CLASSES = {
    "a little more than tiles": lambda n, x: 2 <= n % 1024 <= 30,
    "several tiles": lambda n, x: n > 1024 and n % 1024 == 0,
    "vectors and three": lambda n, x: n > 1025 and n % 4 == 3,
    "odd": lambda n, x: n > 2000 and n % 2 == 1,
    "small": lambda n, x: 2 <= n <= 30 or 34 <= n <= 126,
    "large": lambda n, x: n > 4097,
    "rising": lambda n, x: n > 2 and (np.diff(x) > 0).all(),
    "falling": lambda n, x: n > 2 and (np.diff(x) < 0).all(),
    "below zero": lambda n, x: n > 2 and (x < 0).all() and (np.diff(x) > 0).any(),
    "above zero": lambda n, x: n > 2 and (x > 0).all() and (np.diff(x) < 0).any(),
    "zeros": lambda n, x: n > 100 and set(np.abs(x)) <= {0, 1},
    "of many sizes": lambda n, x: n > 1000 and np.abs(x).max() > 1e4,
}


def test_seeds_in_turn_spread_sizes_and_values():
    """As a judgement draws them: eleven seeds in turn for each of six cases."""
    inputs = kw.Inputs(x="float32[n]", n="size", most=5000)
    for first in range(0, 30000, 998):
        drawn = [inputs(first + 2 * i, case) for case in range(2, 8) for i in range(11)]
        for name, is_in in CLASSES.items():
            assert any(is_in(n, x) for x, n in drawn), (first, name)


def test_sizes_of_one_task_differ_from_each_other():
    inputs = kw.Inputs(x="float32[n, m, k]", n="size", m="size", k="size", most=60)
    drawn = np.array([inputs(2 * i, 3)[1:] for i in range(300)])
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.corrcoef(drawn[:, one], drawn[:, other])[0, 1]) < 0.2
        assert len(set(map(tuple, drawn[:, [one, other]]))) > 200


@pytest.mark.parametrize(("least", "most"), [(1, 1), (0, 1), (0, 0), (3, 3), (7, 5), (100, 40000)])
def test_sizes_stay_within_their_limits(least, most):
    inputs = kw.Inputs(x="float32[n]", n="size", least=least, most=most)
    for case in range(40):
        assert min(least, most) <= inputs(6, case)[1] <= most


BAD_TASKS = {
    "inout_beyond_the_arguments": ({"inout": 3}, kw.InvalidArgument),
    "workspace_beyond_the_arguments": ({"workspace": [7]}, kw.InvalidArgument),
    "entry": ({"entry": ""}, kw.InvalidArgument),
    "entry_of_two_words": ({"entry": "a b"}, kw.InvalidArgument),
    "entry_with_code": ({"entry": "f() {} __global__ void g"}, kw.InvalidArgument),
    "entry_type": ({"entry": 3}, kw.ArgumentError),
    "inputs": ({"inputs": None}, kw.ArgumentError),
    "reference": ({"reference": 3}, kw.ArgumentError),
    "cases": ({"cases": "many"}, kw.ArgumentError),
    "negative": ({"rtol": -1}, kw.InvalidArgument),
    "nan": ({"atol": float("nan")}, kw.InvalidArgument),
    "infinite": ({"rtol": float("inf")}, kw.InvalidArgument),
    "huge": ({"bytes": 10**400}, kw.InvalidArgument),
    "text": ({"atol": "1"}, kw.ArgumentError),
    "allow": ({"allow": ["files"]}, kw.InvalidArgument),
    "allow_text": ({"allow": "malloc"}, kw.ArgumentError),
    "block": ({"block": "32"}, kw.ArgumentError),
    "grid": ({"grid": (1, 2, 3, 4)}, kw.InvalidArgument),
    "option": ({"flags": 3}, kw.ArgumentError),
}


@pytest.mark.parametrize("name", BAD_TASKS)
def test_a_task_that_makes_no_sense(name):
    change, error = BAD_TASKS[name]
    with pytest.raises(error):
        affine(**change)


def raises(*arguments):
    raise KeyError("no such thing")


USELESS_TASKS = {
    "raises": ({"reference": raises}, "reference raised KeyError"),
    "inputs_raise": ({"inputs": raises}, "inputs.* raised KeyError"),
    "shape": ({"reference": lambda x, y, n: (None, np.zeros(n + 1), None)}, "returned float64"),
    "count": ({"reference": lambda x, y, n: (None, x)}, "one value for each argument"),
    "nan": ({"reference": lambda x, y, n: (None, x * np.nan, None)}, "NaN"),
    "nothing": ({"reference": lambda x, y, n: (None, None, None)}, "nothing to judge"),
    "scalar": ({"reference": lambda x, y, n: (None, x, 3)}, "cannot"),
    "const": (
        {"reference": lambda x, y, n: (x + 1, 2 * x + 1, None)},
        r"case 0 .*argument 0 \(const float\* x\): it is const",
    ),
    "integers": ({"reference": lambda x, y, n: (None, (2 * x + 1).astype(int), None)}, "int64"),
    "complex": ({"reference": lambda x, y, n: (None, 2 * x + 1j, None)}, "complex numbers"),
    "architecture": ({"arch": "sm_10"}, "sm_10 is unknown"),
    "options": ({"extra": ["--no-such-option"], "signature": None}, "no-such-option"),
    "options_too": ({"extra": ["--no-such-option"]}, "no-such-option"),
    "no_case": ({"cases": 0}, "cases"),
    "timed": ({"timed": 8}, "timed case"),
    "signature": ({"signature": "const flaot* x"}, "does not compile"),
    "signature_text": ({"signature": "int n) {} void f(int m"}, "list of parameters"),
    "too_few": ({"inputs": lambda seed, case: (np.zeros(3, "f4"),)}, "one value|takes 3"),
    "dtype": (
        {
            "inputs": lambda seed, case: (np.zeros(3), np.zeros(3, "f4"), 3),
            "reference": lambda x, y, n: (None, 2 * x + 1, None),
        },
        "points to float32",
    ),
    "folders": ({"include_dirs": ["/"]}, "include_dirs"),
    "empty_block": ({"block": 0}, "at least one thread"),
}


def test_values_have_an_order():
    with kw.Judge(1) as judge:
        for unordered in (lambda x, y, n: {"y": x}, lambda x, y, n: {1, 2, 3}):
            with pytest.raises(kw.ArgumentError, match=r"reference returned a .*in their order"):
                judge.judge(GOOD, affine(reference=unordered))
        with pytest.raises(kw.ArgumentError, match=r"inputs.* returned a dict"):
            judge.judge(GOOD, affine(inputs=lambda seed, case: {"x": 3}))


COUNT = """__global__ void count(const int* x, T* sum, int n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) sum[0] = 3;
}"""

# References outside of the array's type: refused if no kernel could write them; else compared.
EXPECTED = [
    ("int", "i4", np.array([0.5]), "cannot hold: .*0.5"),
    ("int", "i4", np.array([3.0]), "accepted"),
    ("int", "i4", np.array([3e9]), "cannot hold"),
    ("int", "i4", np.array([1 << 40]), "cannot hold"),
    ("unsigned char", "u1", np.array([-1]), "cannot hold"),
    ("unsigned char", "u1", np.array([256]), "cannot hold"),
    ("unsigned char", "u1", np.array([255]), "wrong"),
    ("unsigned long long", "u8", np.array([(1 << 64) - 1], "u8"), "wrong"),
    ("long long", "i8", np.array([(1 << 64) - 1], "u8"), "cannot hold"),
    ("long long", "i8", np.array([-(1 << 63)]), "wrong"),
    ("bool", "?", np.array([2]), "cannot hold"),
    ("bool", "?", np.array([True]), "accepted"),
    ("float", "f4", np.array([3], "u1"), "integers .uint8. for an array of float32"),
    ("float", "f4", 3, "accepted"),
    ("float", "f4", [3], "accepted"),
    ("float", "f4", np.array([True]), "wrong"),
]


@pytest.mark.parametrize("type, dtype, expected, words", EXPECTED, ids=str)
def test_what_no_kernel_can_write_is_the_task_s_fault(judge, type, dtype, expected, words):
    task = kw.Task(
        entry="count",
        inputs=lambda seed, case: (np.arange(9, dtype="i4"), np.zeros(1, dtype), 9),
        reference=lambda x, sum, n: (None, expected, None),
        cases=1,
    )
    text = COUNT.replace("T*", f"{type}*")
    if words in ("accepted", "wrong"):
        assert judge.judge(text, task).status == words
        return
    with pytest.raises(kw.InvalidArgument, match=words):
        judge.judge(text, task)


def test_fractions_within_the_tolerance_of_an_integer(judge):
    task = kw.Task(
        entry="count",
        inputs=lambda seed, case: (np.arange(9, dtype="i4"), np.zeros(1, "i4"), 9),
        reference=lambda x, sum, n: (None, np.array([2.6]), None),
        atol=0.5,
        cases=1,
    )
    assert judge.judge(COUNT.replace("T*", "int*"), task).accepted


def test_a_const_argument_may_be_returned_as_it_is(judge):
    both = affine(
        reference=lambda x, y, n: (x.astype(np.float64), 2.0 * x + 1, None), rtol=1, atol=1
    )
    with pytest.warns(UserWarning, match="zeros"):
        assert judge.judge(GOOD, both).accepted
    writes = GOOD.replace("if (i < n)", "if (i < n) const_cast<float*>(x)[i] *= 1.5f; if (i < n)")
    with pytest.warns(UserWarning, match="zeros"):
        verdict = judge.judge(writes.replace("__restrict__", ""), both)
    assert verdict.status == "cheating" and "const" in verdict.reason


def test_without_a_signature_the_text_s_const_is_the_text_s_fault(judge):
    text = GOOD.replace("float* y", "const float* y").replace("y[i] =", "((float*)y)[i] =")
    verdict = judge.judge(text, affine(signature=None))
    assert verdict.status == "compile" and "it is const" in verdict.reason
    with pytest.raises(kw.InvalidArgument, match="const"):
        judge.judge(text, affine(signature="const float* x, const float* y, int n"))


@pytest.mark.parametrize("name", USELESS_TASKS)
def test_a_task_that_cannot_judge_says_so(judge, name):
    change, words = USELESS_TASKS[name]
    with pytest.raises(kw.InvalidArgument, match=words):
        judge.judge(GOOD, affine(**change))
    assert judge.judge(GOOD, AFFINE).accepted


def test_what_a_task_raises_is_the_cause(judge):
    with pytest.raises(kw.InvalidArgument) as info:
        judge.judge(GOOD, affine(reference=raises))
    assert isinstance(info.value.__cause__, KeyError)


def test_inputs_that_differ_from_call_to_call(judge):
    def inputs(seed, case):
        return np.random.standard_normal(64).astype("f4"), np.zeros(64, "f4"), 64

    with pytest.raises(kw.InvalidArgument, match="not deterministic"):
        judge.judge(GOOD, affine(inputs=inputs))
    # Arrays only written may stay as allocated.
    left = affine(inputs=lambda s, c: (np.full(64, c, "f4"), np.empty(64, "f4"), 64))
    assert judge.judge(GOOD, left).accepted


def test_nan_where_it_is_allowed(judge):
    root = GOOD.replace("2 * x[i] + 1", "sqrtf(x[i])")

    def reference(x, y, n):
        with np.errstate(invalid="ignore"):
            return None, np.sqrt(x.astype(np.float64)), None

    with pytest.raises(kw.InvalidArgument, match="NaN"):
        judge.judge(root, affine(reference=reference))
    assert judge.judge(root, affine(reference=reference, allow=["nan"])).accepted
