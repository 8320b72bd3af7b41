"""The device header <kernwright/philox.cuh> against published vectors and plain Python."""

import numpy as np
import pytest

import kernwright as kw

SOURCE = r"""
#include <kernwright/philox.cuh>
using kernwright::Philox;

__global__ void raw(const unsigned* in, unsigned* out) {
  const unsigned* c = in + 6 * threadIdx.x;
  const uint4 counter = make_uint4(c[0], c[1], c[2], c[3]);
  const uint4 r = kernwright::philox4x32(counter, make_uint2(c[4], c[5]));
  unsigned* o = out + 4 * threadIdx.x;
  o[0] = r.x; o[1] = r.y; o[2] = r.z; o[3] = r.w;
}
__global__ void stream(unsigned long long seed, unsigned long long offset, unsigned* out, int n) {
  Philox random(seed, threadIdx.x, offset);
  for (int i = 0; i < n; ++i) out[threadIdx.x * n + i] = random.next();
}
__global__ void values(unsigned long long seed, float* uniform, float* normal, double* wide,
                       unsigned* small, int n) {
  Philox random(seed, blockIdx.x * blockDim.x + threadIdx.x);
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * n;
  for (int i = first; i < first + n; i += 4) {
    const float4 u = random.uniform4(), z = random.normal4();
    uniform[i] = u.x; uniform[i + 1] = u.y; uniform[i + 2] = u.z; uniform[i + 3] = u.w;
    normal[i] = z.x; normal[i + 1] = z.y; normal[i + 2] = z.z; normal[i + 3] = z.w;
    for (int j = i; j < i + 4; ++j) {
      wide[j] = random.uniform_double();
      small[j] = random.below(10);
    }
  }
}
__global__ void singles(unsigned long long seed, float* out) {
  Philox random(seed);
  out[0] = random.uniform();
  out[1] = random.normal();
}
"""

# Random123's kat_vectors, "philox4x32 10": counter, key, result.
VECTORS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def philox(counter, key):
    """The ten rounds in Python's own integers."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k0, q & 0xFFFFFFFF, (p >> 32) ^ d ^ k1, p & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def words(value):
    return value & 0xFFFFFFFF, value >> 32


@pytest.fixture(scope="module")
def module():
    return kw.module(SOURCE)


def test_the_published_vectors(module):
    given = np.array([[*counter, *key] for counter, key, _ in VECTORS], np.uint32)
    out = kw.zeros((3, 4), np.uint32)
    module["raw"][1, 3](kw.asarray(given), out)
    assert out.numpy().tolist() == [list(result) for *_, result in VECTORS]
    assert [philox(counter, key) for counter, key, _ in VECTORS] == [v[2] for v in VECTORS]


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1, 0x0123456789ABCDEF])
@pytest.mark.parametrize("offset", [0, 3, 2**32 - 1, 2**64 - 1])
def test_a_stream_counts_blocks(module, seed, offset):
    out = kw.zeros((5, 11), np.uint32)
    module["stream"][1, 5](seed, offset, out, 11)
    for thread, row in enumerate(out.numpy().tolist()):
        expected = []
        for block in range(3):
            counter = (*words((offset + block) % 2**64), *words(thread))
            expected += philox(counter, words(seed))
        assert row == expected[:11]


def test_distributions(module):
    n, threads = 64, 512
    count = n * threads
    uniform, normal = kw.zeros(count, np.float32), kw.zeros(count, np.float32)
    wide, small = kw.zeros(count, np.float64), kw.zeros(count, np.uint32)
    module["values"][4, 128](7, uniform, normal, wide, small, n)
    for values in (uniform.numpy().astype(np.float64), wide.numpy()):
        assert values.min() >= 0 and values.max() < 1
        histogram = np.histogram(values, 64, (0, 1))[0]
        chi2 = ((histogram - count / 64) ** 2 / (count / 64)).sum()
        assert 25 < chi2 < 120  # 63 degrees of freedom
    z = normal.numpy().astype(np.float64)
    assert abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.02
    assert abs((z**4).mean() - 3) < 0.3
    assert abs((np.abs(z) < 1).mean() - 0.6827) < 0.012
    assert abs(np.corrcoef(z[::2], z[1::2])[0, 1]) < 0.03
    digits = np.bincount(small.numpy(), minlength=11)
    assert digits[10] == 0 and (abs(digits[:10] - count / 10) < 300).all()


def test_single_values_follow_their_definition(module):
    out = kw.zeros(2, np.float32)
    module["singles"][1, 1](99, out)
    bits = philox((0, 0, 0, 0), (99, 0))
    uniform = (bits[0] >> 8) / 2**24
    radius = np.sqrt(-2 * np.log(((bits[1] >> 8) + 1) / 2**24))
    normal = radius * np.cos(2 * np.pi * (bits[2] >> 8) / 2**24)
    assert out.numpy()[0] == np.float32(uniform)
    assert out.numpy()[1] == pytest.approx(normal, rel=1e-5, abs=1e-6)


def test_the_user_s_own_header_of_that_name_wins():
    kernel = kw.kernel(
        "#include <kernwright/philox.cuh>\n__global__ void k(int* x) { *x = MINE; }",
        headers={"kernwright/philox.cuh": "#define MINE 4\n"},
    )
    x = kw.zeros(1, np.int32)
    kernel[1, 1](x)
    assert x.numpy()[0] == 4
