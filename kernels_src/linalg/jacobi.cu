// Singular values by one-sided Jacobi rotations (Hestenes), one block a matrix.
#include <kernwright/matrices.cuh>

using namespace kernwright;

constexpr int kMostSweeps = 40;  // about ten are usual

/// Rotates two columns so that they become orthogonal, by one warp; false where they are.
template <typename T, bool Vectors>
__device__ bool rotate_pair(T* p, T* q, T* vp, T* vq, int m, int n) {
  using P = Part<T>;
  using M = Real<P>;
  P alpha = 0, beta = 0;
  T gamma = from_real<T>(0);
  for (int i = threadIdx.x % 32; i < m; i += 32) {
    const T x = p[i], y = q[i];
    alpha += squared_modulus(x), beta += squared_modulus(y);
    gamma = gamma + math_conj(x) * y;
  }
  alpha = warp_reduce(alpha, Sum());
  beta = warp_reduce(beta, Sum());
  gamma = warp_reduce(gamma, Sum());
  const P size = magnitude(gamma), tolerance = M::sqrt(static_cast<P>(m)) * epsilon<P>();
  if (!(size > tolerance * M::sqrt(alpha) * M::sqrt(beta))) return false;
  if (alpha < M::kTiny || beta < M::kTiny) return false;  // what rounding left of a column
  const P zeta = (beta - alpha) / (2 * size);
  const P tangent = M::copysign(1 / (M::abs(zeta) + M::hypot(zeta, 1)), zeta);
  const P c = 1 / M::sqrt(1 + tangent * tangent), s = c * tangent;
  const T phase = math_conj(gamma) * (1 / size);
  for (int i = threadIdx.x % 32; i < m; i += 32) {
    const T x = p[i], y = q[i] * phase;
    p[i] = x * c - y * s, q[i] = x * s + y * c;
  }
  if constexpr (Vectors) {
    for (int i = threadIdx.x % 32; i < n; i += 32) {
      const T x = vp[i], y = vq[i] * phase;
      vp[i] = x * c - y * s, vq[i] = x * s + y * c;
    }
  }
  return true;
}

/// Column-major matrices [m, n], m >= n, are overwritten. `values` has n each, falling; with
/// `Vectors`, `left` [m, n] has the left singular vectors (0 where the value is 0) and `right`
/// [n, n] the conjugates of the right ones, both column-major; `basis` [n, n] is work. NaN without
/// convergence.
template <typename T, bool Vectors>
__global__ void __launch_bounds__(512) jacobi(T* matrices, T* basis, Part<T>* values,
                                              Part<T>* norms, T* left, T* right, int m, int n) {
  using P = Part<T>;
  using M = Real<P>;
  const long long batch = blockIdx.x, count = static_cast<long long>(m) * n;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  T* const a = matrices + batch * count;
  T* const v = basis + (Vectors ? batch * n * n : 0);
  values += batch * n, norms += batch * n;
  const P scale = block_scale(a, count);
  for (long long i = threadIdx.x; i < count; i += blockDim.x) a[i] = a[i] * (1 / scale);
  if constexpr (Vectors) {
    for (long long i = threadIdx.x; i < static_cast<long long>(n) * n; i += blockDim.x) {
      v[i] = from_real<T>(i % n == i / n ? 1 : 0);
    }
  }
  __syncthreads();
  const int players = n + n % 2, rounds = players - 1;
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMostSweeps; ++sweep) {
    turned = false;
    for (int round = 0; round < rounds; ++round) {
      for (int pair = warp; pair < players / 2; pair += warps) {
        const int first = (round + rounds - pair) % rounds;
        const int second = pair == 0 ? rounds : (round + pair) % rounds;
        const int p = first < second ? first : second, q = first < second ? second : first;
        if (q >= n) continue;
        turned |= rotate_pair<T, Vectors>(
            a + static_cast<long long>(p) * m, a + static_cast<long long>(q) * m,
            v + static_cast<long long>(p) * n, v + static_cast<long long>(q) * n, m, n);
      }
      __syncthreads();
    }
    turned = __syncthreads_or(turned) != 0;
  }
  bool failed = turned;
  for (int j = warp; j < n; j += warps) {
    P sum = 0;
    for (int i = lane; i < m; i += 32) sum += squared_modulus(a[static_cast<long long>(j) * m + i]);
    sum = M::sqrt(warp_reduce(sum, Sum()));
    failed |= !is_finite(sum);
    if (lane == 0) norms[j] = sum;
  }
  failed = __syncthreads_or(failed) != 0;
  for (int j = warp; j < n; j += warps) {
    const P norm = norms[j];
    int rank = 0;
    for (int other = lane; other < n; other += 32) {
      const P theirs = norms[other];
      rank += theirs > norm || (theirs == norm && other < j) ? 1 : 0;
    }
    rank = failed ? j : warp_reduce(rank, Sum());
    if (lane == 0) values[rank] = failed ? M::nan() : norm * scale;
    if constexpr (Vectors) {
      const P factor = failed ? M::nan() : norm == 0 ? P(0) : 1 / norm;
      T* const u = left + batch * count + static_cast<long long>(rank) * m;
      T* const w = right + (batch * n + rank) * n;
      for (int i = lane; i < m; i += 32) u[i] = a[static_cast<long long>(j) * m + i] * factor;
      for (int i = lane; i < n; i += 32) {
        const T value = v[static_cast<long long>(j) * n + i];
        w[i] = failed ? from_real<T>(M::nan()) : math_conj(value);
      }
    }
  }
}
