"""The init check of code without optimisation. It moves whole objects through local memory, padding
too, and sets bit fields in place."""

import pathlib
import sys

import numpy as np
import pytest

import kernwright as kw

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sim"))
import corpus

pytestmark = pytest.mark.usefixtures("sim")

GROUPS = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
"""
HEAD = """struct Plus { __device__ int operator()(int a, int b) const { return a + b; } };
struct Padded { char c; double d; };
struct Bits { unsigned a : 3, b : 7, c : 9; };
template <class F> __device__ int apply(F f, int a, int b) { return f(a, b); }
__device__ Padded make(char c, double d) { Padded p; p.c = c; p.d = d; return p; }
__device__ int sum(Padded p) { return p.c + (int)p.d; }
__global__ void k(const int* x, int* y, int n) {
    int i = threadIdx.x, v = x[i];
"""
# Kernels and their results from v and the thread's number.
RIGHT = {
    "functor": ("y[i] = apply(Plus(), v, 2);", lambda v, i: v + 2),
    "lambda": (
        "Padded p = make(v, 1); y[i] = apply([&](int a, int b) { return sum(p) + a + b; }, 1, 2);",
        lambda v, i: v + 4,
    ),
    "padding": (
        "Padded p = make(v, 2.0 * v), q = p, r; r = q; y[i] = sum(r);",
        lambda v, i: 3 * v,
    ),
    "array of structs": (
        "Padded p[3]; for (int k = 0; k < 3; ++k) p[k] = make(k, v); y[i] = sum(p[n % 3]);",
        lambda v, i: v + 1,
    ),
    "bit fields": (
        "Bits b; b.a = v; b.b = 3 * v; b.c = 5; Bits c = b; y[i] = c.a + c.b + c.c;",
        lambda v, i: v % 8 + 3 * v % 128 + 5,
    ),
    "tile": (
        "auto t = cg::tiled_partition<16>(cg::this_thread_block()); y[i] = t.shfl_xor(v, 1);",
        lambda v, i: v + 1 - 2 * (i % 2),
    ),
    "coalesced": (
        "y[i] = v; if (i % 3 == 0) { auto t = cg::coalesced_threads(); y[i] = t.shfl(v, 1); }",
        lambda v, i: v + (i % 3 == 0) * ((i // 32 * 32 + 2) // 3 * 3 + 3 - i),
    ),
    "reduce": (
        "auto t = cg::tiled_partition<32>(cg::this_thread_block()); "
        "y[i] = cg::reduce(t, v, cg::plus<int>());",
        lambda v, i: 496 + i // 32 * 1024,
    ),
}
WRONG = {
    "member": "Padded p; p.c = v; Padded q = p, r = q; y[i] = sum(r);",
    "element": "int a[8], b[8]; for (int k = 0; k < 7; ++k) a[k] = k; "
    "for (int k = 0; k < 8; ++k) b[k] = a[k]; y[i] = b[n % 8 + 3];",
    "to global": "int a[8]; for (int k = 0; k < 7; ++k) a[k] = k; y[i] = a[n % 8 + 3];",
    "to shared": "__shared__ int s[64]; int a[8]; for (int k = 0; k < 7; ++k) a[k] = k; "
    "s[i] = a[n % 8 + 3]; __syncthreads(); y[i] = s[63 - i];",
    "printed": 'int a[8]; for (int k = 0; k < 7; ++k) a[k] = k; printf("%d", a[n % 8 + 3]);',
    "other bits": "Bits a[2]; a[0].a = v; y[i] = a[n % 2 + 1].a;",
}


def run(body):
    text = (GROUPS if "cg::" in body else "") + HEAD + body + "\n}"
    if package := corpus.lacks_headers_of(text):
        pytest.skip(f"needs the headers of {package}")
    kernel = kw.kernel(text, name="k", options=kw.ProgramOptions(device_debug=True))
    x, y = kw.asarray(np.arange(64, dtype=np.int32)), kw.zeros(64, "int32")
    with kw.checks() as report:
        kernel[1, 64](x, y, 100)
    return report, y.numpy()


@pytest.mark.parametrize("case", RIGHT)
def test_whole_objects_may_be_moved(case):
    body, expected = RIGHT[case]
    report, y = run(body)
    report.raise_if_any()
    i = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(y, expected(i, i))


@pytest.mark.parametrize("case", WRONG)
def test_what_is_used_has_to_be_written(case):
    report, _ = run(WRONG[case])
    assert [finding.kind for finding in report] == ["init"]
    assert "local memory" in str(report)
