"""Matrix product with tiles in shared memory."""

import numpy as np

import kernwright as kw

TILE = 16
sgemm = kw.kernel(
    r"""
__global__ void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0;
    for (int first = 0; first < k; first += TILE) {
        ta[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0.0f;
        tb[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += ta[y][i] * tb[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}""",
    defines={"TILE": TILE},
)

m, n, k = 130, 75, 200
rng = np.random.default_rng(1)
a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
c = kw.empty((m, n))
sgemm[(-(-n // TILE), -(-m // TILE)), (TILE, TILE)](kw.asarray(a), kw.asarray(b), c, m, n, k)

expected = a.astype(np.float64) @ b.astype(np.float64)
error = np.linalg.norm(c.numpy() - expected) / np.linalg.norm(expected)
print(f"({m}, {k}) @ ({k}, {n}): relative error {error:.1e}")
assert error < 1e-6
