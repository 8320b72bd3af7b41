"""The tasks of the judge's tests."""

import numpy as np

import kernwright as kw

GOOD = """__global__ void affine(const float* __restrict__ x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}"""


def affine(**changes):
    fields = {
        "entry": "affine",
        "signature": "const float* x, float* y, int n",
        "inputs": kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=5000),
        "reference": lambda x, y, n: (None, 2.0 * x.astype(np.float64) + 1, None),
    }
    return kw.Task(**{**fields, **changes})


AFFINE = affine()

RELU = kw.Task(
    entry="relu",
    signature="const float* x, float* y, int n",
    inputs=kw.Inputs(
        x="float32[n]", y="float32[n]", n="size", most=2000, values=("normal", "special")
    ),
    reference=lambda x, y, n: (None, np.maximum(x, np.float32(0)), None),
)


def _total_inputs(seed, case):
    rng = np.random.default_rng([seed, case])
    n = (2000, 1, 31, 32, 33, 255, 256, 257)[case]
    return rng.integers(-100, 100, n, dtype=np.int32), np.zeros(1, np.int32), n


TOTAL = kw.Task(
    entry="total",
    signature="const int* x, int* sum, int n",
    inputs=_total_inputs,
    reference=lambda x, sum, n: (None, [x.sum()], None),
    grid=lambda x, sum, n: -(-n // 256),
)


def _extremes(seed, case):
    x, _, n = _total_inputs(seed, case)
    worst = np.iinfo(np.int32)
    return x, np.array([worst.max], np.int32), np.array([worst.min], np.int32), n


MINMAX = kw.Task(
    entry="minmax",
    signature="const int* x, int* high, int* low, int n",
    inputs=_extremes,
    reference=lambda x, a, b, n: (None, [x.max()], [x.min()], None),
    grid=lambda x, a, b, n: -(-n // 256),
)


def _with_zeros(seed, case):
    x, _, n = AFFINE.inputs(seed, case)
    return x, np.zeros(n, np.float32), n


ZEROS = affine(inputs=_with_zeros)
HEAP = affine(allow=["malloc"])

LESS = kw.Task(
    entry="less",
    signature="const float* x, const float* z, bool* y, int n",
    inputs=kw.Inputs(x="float32[n]", z="float32[n]", y="bool[n]", n="size", most=2000),
    reference=lambda x, z, y, n: (None, None, x < z, None),
)

INTEGERS = kw.Task(
    entry="affine",
    signature="const int* x, int* y, int n",
    inputs=kw.Inputs(x="int32[n]", y="int32[n]", n="size", most=5000),
    reference=lambda x, y, n: (None, 2 * x + 1, None),
)
INVERSE = kw.Task(
    entry="inverse",
    signature="const bool* x, bool* y, int n",
    inputs=kw.Inputs(x="bool[n]", y="bool[n]", n="size", most=5000),
    reference=lambda x, y, n: (None, ~x, None),
)


def _halves(seed, case):
    x = np.random.default_rng([seed, case]).standard_normal(512).astype(np.float16)
    return x, np.zeros(512, np.float16), 512


def claims(work):
    """A task that claims so many bytes of work; in truth there are 2048."""
    return kw.Task(
        entry="twice",
        signature="const __half* x, __half* y, int n",
        inputs=_halves,
        reference=lambda x, y, n: (None, 2 * x.astype(np.float64), None),
        bytes=work,
        cases=2,
        grid=2,
        block=32,
    )


# Every honest kernel is impossible.
CLAIMS, CLAIMS_LITTLE = claims(1e9), claims(2e4)

TASKS = {
    "affine": AFFINE,
    "relu": RELU,
    "total": TOTAL,
    "minmax": MINMAX,
    "zeros": ZEROS,
    "heap": HEAP,
    "less": LESS,
    "integers": INTEGERS,
    "inverse": INVERSE,
    "claims": CLAIMS,
    "claims_little": CLAIMS_LITTLE,
}
