"""The header <kernwright/walk.cuh>: offsets of elements in strided views."""

import numpy as np

import kernwright as kw

_SOURCE = """
#include <kernwright/walk.cuh>
__global__ void offsets(const Walk<1, 3> view, const unsigned* numbers, long long* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = walk_offsets(view, numbers[i]).offset[0];
}
"""

_WALK = np.dtype(
    [
        ("ndim", "i4"),
        ("padding", "i4"),
        ("stride", "i8", 3),
        ("extent", "i8", 3),
        ("magic", "u4", 3),
        ("shift", "u4", 3),
        ("end", "u4", 0),
    ]
)


def _walk(extents, strides):
    """The parameter, as walk_parameter() of walk_plan.h makes it."""
    walk = np.zeros((), _WALK)
    walk["ndim"] = len(extents)
    for d, (extent, stride) in enumerate(zip(extents, strides, strict=True)):
        shift = (extent - 1).bit_length()
        walk["stride"][d], walk["extent"][d] = stride, extent
        walk["magic"][d], walk["shift"][d] = -(-(1 << 31 + shift) // extent), shift
    return walk[()]


def test_offsets_divide_by_every_extent():
    kernel = kw.kernel(_SOURCE)
    last = 2**31 - 1
    extents = [*range(1, 18), *(2**p + d for p in (5, 16, 29, 30) for d in (-1, 0, 1)), last]
    for first in extents:
        for second in (1, 3, 4):
            edges = {0, 1, first - 1, first, first * second - 1, first * second, last - 1, last}
            numbers = np.array([i for i in sorted(edges) if i <= last], np.uint32)
            out = kw.zeros(numbers.size, dtype=np.int64)
            walk = _walk([first, second, last], [3, -50, 7])
            kernel[1, 32](walk, kw.asarray(numbers), out, numbers.size)
            i = numbers.astype(np.int64)
            want = i % first * 3 - i // first % second * 50 + i // first // second * 7
            np.testing.assert_array_equal(out.numpy(), want, f"extents {first}, {second}")
