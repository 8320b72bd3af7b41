"""Inline PTX as CUDA headers and kernel libraries write it, where the manual has another form."""

import numpy as np
import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")


@pytest.mark.parametrize(
    "words", ["x4.m8n8.shared.b16", "m8n8.x4.shared.b16", "m8n8.shared.x4.b16"]
)
def test_words_of_ldmatrix_in_another_order(words):
    kernel = kw.kernel(
        f"""__global__ void f(const unsigned* in, unsigned* out) {{
    __shared__ alignas(16) unsigned tile[128];
    int lane = threadIdx.x;
    for (int i = 0; i < 4; ++i) tile[i * 32 + lane] = in[i * 32 + lane];
    __syncwarp();
    unsigned at = (unsigned)__cvta_generic_to_shared(tile) + lane * 16, r[4];
    asm volatile("ldmatrix.sync.aligned.{words} {{%0, %1, %2, %3}}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
    for (int i = 0; i < 4; ++i) out[i * 32 + lane] = r[i];
}}"""
    )
    values = np.arange(128, dtype=np.uint32) * 77
    out = kw.zeros(128, "uint32")
    kernel[1, 32](kw.asarray(values), out)
    # Matrix i has eight rows of four words; lane l holds word l % 4 of row l / 4.
    assert np.array_equal(out.numpy(), values)


def test_parts_of_a_fragment_are_dropped_or_literal():
    kernel = kw.kernel(
        """__global__ void f(const unsigned* a, const unsigned* b, float* out) {
    int lane = threadIdx.x;
    float x, y;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, _, %1, _}, {%2, %3}, {%4}, "
                 "{%5, 0., %6, 0f00000000};"
                 : "=f"(x), "=f"(y)
                 : "r"(a[lane]), "r"(a[32 + lane]), "r"(b[lane]), "f"(1.0f), "f"(2.0f));
    out[lane] = x;
    out[32 + lane] = y;
}"""
    )
    random = np.random.default_rng(3)
    left = random.integers(-4, 5, (16, 8)).astype(np.float16)
    right = random.integers(-4, 5, (8, 8)).astype(np.float16)
    lanes = np.arange(32)
    row, pair = lanes // 4, lanes % 4 * 2
    a = np.stack([left[row], left[row + 8]])[:, lanes[:, None], pair[:, None] + [0, 1]]
    b = right[pair[:, None] + [0, 1], row[:, None]]
    out = kw.zeros((2, 32), "float32")
    kernel[1, 32](
        kw.asarray(np.ascontiguousarray(a).view(np.uint32).reshape(64)),
        kw.asarray(np.ascontiguousarray(b).view(np.uint32).reshape(32)),
        out,
    )
    product = left.astype(np.float64) @ right.astype(np.float64)
    expected = np.stack([product[row, pair] + 1, product[row + 8, pair] + 2])
    assert np.array_equal(out.numpy(), expected)


def test_ballots_as_cub_writes_them():
    out = kw.zeros(32, "uint32")
    kw.kernel(
        """__global__ void f(unsigned* out) {
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; vote.ballot.sync.b32 %0, p, 0xffffffff; }"
                 : "=r"(out[threadIdx.x]) : "r"(threadIdx.x));
}"""
    )[1, 32](out)
    assert np.all(out.numpy() == 31)
