// Eigenvalues of real tridiagonal matrices by implicit QL steps, one block a matrix.
#include <kernwright/matrices.cuh>

using namespace kernwright;

extern __shared__ __align__(16) unsigned char pool[];

constexpr int kMostSteps = 60;  // for one eigenvalue: two are usual
constexpr int kManySteps = 12;

/// The state of QL steps: rotations of the columns from `low` to `high` wait; low < 0 ends it.
struct Sweep {
  int low, high, value, steps;
};

/// One QL step by one thread; rotations go to `cosines` and `sines`.
template <typename P>
__device__ Sweep next_sweep(Sweep at, P* d, P* e, P* cosines, P* sines, int n) {
  using M = Real<P>;
  int m = at.value;
  for (;;) {
    while (m + 1 < n) {
      // After many steps small means small beside the largest of the matrix, which is about 1.
      const P least = at.steps < kManySteps ? 0 : 1;
      const P around = M::abs(d[m]) + M::abs(d[m + 1]) + least, off = M::abs(e[m]);
      if (off <= epsilon<P>() * around || off < M::kTiny) break;
      ++m;
    }
    if (m != at.value) break;
    if (++at.value >= n) return {-1, 0, at.value, 0};
    at.steps = 0, m = at.value;
  }
  if (++at.steps > kMostSteps) return {-1, -1, at.value, at.steps};
  const int l = at.value;
  P g = (d[l + 1] - d[l]) / (2 * e[l]);
  g = d[m] - d[l] + e[l] / (g + M::copysign(M::hypot(g, 1), g));
  P s = 1, c = 1, p = 0;
  int i = m - 1;
  for (; i >= l; --i) {
    const P f = s * e[i], b = c * e[i], r = M::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= p;
      e[m] = 0;
      break;
    }
    s = f / r, c = g / r, g = d[i + 1] - p;
    const P t = (d[i] - g) * s + 2 * c * b;
    p = s * t;
    d[i + 1] = g + p;
    g = c * t - b;
    cosines[i] = c, sines[i] = s;
  }
  if (i < l) d[l] -= p, e[l] = g, e[m] = 0;
  return {i + 1, m, l, at.steps};
}

/// Applies the rotations that wait to columns `low` to `high`; each thread takes rows.
template <typename T>
__device__ void turn_columns(T* z, const Part<T>* cosines, const Part<T>* sines, int low, int high,
                             int n) {
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    T upper = z[static_cast<long long>(high) * n + k];
    for (int i = high - 1; i >= low; --i) {
      const T lower = z[static_cast<long long>(i) * n + k];
      const Part<T> c = cosines[i], s = sines[i];
      z[static_cast<long long>(i + 1) * n + k] = lower * s + upper * c;
      upper = lower * c - upper * s;
    }
    z[static_cast<long long>(low) * n + k] = upper;
  }
}

/// The eigenvalues of the matrices with `diagonal` and `beside`, rising, times `scales`, and with
/// `Vectors` the columns of `basis` [n, n] (column-major) turned into eigenvectors, in `vectors`.
/// NaN where there is no convergence. `work` has 2 n each; all four lie in shared memory where that
/// is given.
template <typename T, bool Vectors>
__global__ void __launch_bounds__(512)
    tridiagonal_ql(Part<T>* diagonal, Part<T>* beside, Part<T>* work, const Part<T>* scales,
                   T* basis, Part<T>* values, T* vectors, int n, bool shared) {
  using P = Part<T>;
  const long long batch = blockIdx.x;
  P* d = diagonal + batch * n;
  P* e = beside + batch * n;
  P* cosines = work + batch * 2 * n;
  if (shared) {
    P* const held = reinterpret_cast<P*>(pool);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      held[i] = d[i];
      if (i + 1 < n) held[n + i] = e[i];
    }
    d = held, e = held + n, cosines = held + 2 * n;
  }
  P* const sines = cosines + n;
  T* const z = basis + batch * n * n;
  __shared__ Sweep sweep;
  Sweep at = {0, 0, 0, 0};
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) sweep = next_sweep(at, d, e, cosines, sines, n);
    __syncthreads();
    at = sweep;
    if (at.low < 0) break;
    if constexpr (Vectors) turn_columns(z, cosines, sines, at.low, at.high, n);
  }
  const bool failed = at.high < 0;
  for (int i = threadIdx.x / 32; i < n; i += blockDim.x / 32) {
    const P value = d[i];
    int rank = 0;
    for (int j = threadIdx.x % 32; j < n; j += 32) {
      rank += d[j] < value || (d[j] == value && j < i) ? 1 : 0;
    }
    rank = failed ? i : warp_reduce(rank, Sum());
    if (threadIdx.x % 32 == 0)
      values[batch * n + rank] = failed ? Real<P>::nan() : value * scales[batch];
    if constexpr (Vectors) {
      const T* const from = z + static_cast<long long>(i) * n;
      T* const to = vectors + (batch * n + rank) * n;
      for (int k = threadIdx.x % 32; k < n; k += 32) {
        to[k] = failed ? from_real<T>(Real<P>::nan()) : from[k];
      }
    }
  }
}
