// Factors of matrices by elimination, and systems solved with them: one block takes one matrix.
#include <kernwright/matrices.cuh>

using namespace kernwright;

extern __shared__ __align__(16) unsigned char pool[];

template <typename P>
struct Pivot {
  P size;
  int row;
};
/// The larger one; of equals the one further up.
struct BetterPivot {
  template <typename P>
  __device__ Pivot<P> operator()(Pivot<P> a, Pivot<P> b) const {
    return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a;
  }
};

/// Row-major matrices [n, n] become L (below the diagonal, which is 1) and U of P A = L U by
/// Gaussian elimination with partial pivoting; row k was exchanged with row pivots[k] >= k. `info`
/// is the first k + 1 where U[k, k] is 0, or 0.
template <typename T>
__global__ void __launch_bounds__(512)
    lu_factor(T* matrices, int* pivots, int* info, int n, bool shared) {
  const long long count = static_cast<long long>(n) * n;
  T* const matrix = matrices + blockIdx.x * count;
  T* const a = stage(matrix, count, shared ? pool : nullptr);
  int singular = 0;
  for (int k = 0; k < n; ++k) {
    Pivot<Part<T>> best = {-1, n};
    for (int i = k + threadIdx.x; i < n; i += blockDim.x) {
      best = BetterPivot()(best, {size_of(a[static_cast<long long>(i) * n + k]), i});
    }
    best = block_total(best, BetterPivot());
    const int row = best.row < n ? best.row : k;  // a column of NaN has none
    T* const top = a + static_cast<long long>(k) * n;
    T* const chosen = a + static_cast<long long>(row) * n;
    if (threadIdx.x == 0) pivots[static_cast<long long>(blockIdx.x) * n + k] = row;
    __syncthreads();  // the column is read
    if (row != k) {
      for (int j = threadIdx.x; j < n; j += blockDim.x) {
        const T held = top[j];
        top[j] = chosen[j];
        chosen[j] = held;
      }
    }
    __syncthreads();
    const T pivot = top[k];
    if (real_component(pivot) == 0 && imaginary_component(pivot) == 0) {
      if (singular == 0) singular = k + 1;
      continue;
    }
    for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x) {
      T& below = a[static_cast<long long>(i) * n + k];
      below = below / pivot;
    }
    __syncthreads();
    for (int i = k + 1 + threadIdx.x / 32; i < n; i += blockDim.x / 32) {
      T* const line = a + static_cast<long long>(i) * n;
      const T factor = line[k];
      for (int j = k + 1 + threadIdx.x % 32; j < n; j += 32) line[j] = line[j] - factor * top[j];
    }
    __syncthreads();
  }
  unstage(matrix, a, count);
  if (threadIdx.x == 0) info[blockIdx.x] = singular;
}

/// Row-major right sides [n, columns] become solutions: a block takes blockDim.x columns, and
/// blockDim.y threads share the rows of each. Blocks of one matrix follow each other.
template <typename T>
__global__ void __launch_bounds__(512)
    lu_solve(const T* matrices, const int* pivots, T* sides, int n, int columns, int tiles) {
  const long long batch = blockIdx.x / tiles;
  const long long column = static_cast<long long>(blockIdx.x % tiles) * blockDim.x + threadIdx.x;
  const T* const a = matrices + batch * n * n;
  const int* const swaps = pivots + batch * n;
  T* const x = sides + batch * n * columns + column;
  const bool in_range = column < columns;
  const int first = threadIdx.y;
  if (in_range && first == 0) {
    for (int k = 0; k < n; ++k) {
      const long long from = static_cast<long long>(swaps[k]) * columns;
      const T held = x[static_cast<long long>(k) * columns];
      x[static_cast<long long>(k) * columns] = x[from];
      x[from] = held;
    }
  }
  __syncthreads();
  for (int k = 0; k < n; ++k) {
    if (in_range) {
      const T known = x[static_cast<long long>(k) * columns];
      for (int i = k + 1 + first; i < n; i += blockDim.y) {
        T& left = x[static_cast<long long>(i) * columns];
        left = left - a[static_cast<long long>(i) * n + k] * known;
      }
    }
    __syncthreads();
  }
  for (int k = n - 1; k >= 0; --k) {
    T& at = x[static_cast<long long>(k) * columns];
    if (in_range && first == 0) at = at / a[static_cast<long long>(k) * n + k];
    __syncthreads();
    if (in_range) {
      const T known = at;
      for (int i = first; i < k; i += blockDim.y) {
        T& left = x[static_cast<long long>(i) * columns];
        left = left - a[static_cast<long long>(i) * n + k] * known;
      }
    }
    __syncthreads();
  }
}

/// Row-major Hermitian matrices, of which the lower triangle is read, become L of A = L L^H with 0
/// above the diagonal. `info` is the first k + 1 where A is not positive definite, or 0; L is NaN
/// then.
template <typename T>
__global__ void __launch_bounds__(512) cholesky(T* matrices, int* info, int n, bool shared) {
  using P = Part<T>;
  const long long count = static_cast<long long>(n) * n;
  T* const matrix = matrices + blockIdx.x * count;
  T* const a = stage(matrix, count, shared ? pool : nullptr);
  int failed = 0;
  for (int k = 0; k < n; ++k) {
    T* const diagonal = a + static_cast<long long>(k) * n + k;
    const P square = real_component(*diagonal);
    if (!(square > 0) || !is_finite(square)) {
      failed = k + 1;
      break;
    }
    const P root = Real<P>::sqrt(square);
    __syncthreads();  // the diagonal is read
    if (threadIdx.x == 0) *diagonal = from_real<T>(root);
    for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x) {
      T& below = a[static_cast<long long>(i) * n + k];
      below = below * (1 / root);
    }
    __syncthreads();
    for (int i = k + 1 + threadIdx.x / 32; i < n; i += blockDim.x / 32) {
      T* const line = a + static_cast<long long>(i) * n;
      const T factor = line[k];
      for (int j = k + 1 + threadIdx.x % 32; j <= i; j += 32) {
        line[j] = line[j] - factor * math_conj(a[static_cast<long long>(j) * n + k]);
      }
    }
    __syncthreads();
  }
  __syncthreads();
  for (long long at = threadIdx.x; at < count; at += blockDim.x) {
    const bool above = at % n > at / n;
    if (above || failed != 0) a[at] = from_real<T>(above ? P(0) : Real<P>::nan());
  }
  unstage(matrix, a, count);
  if (threadIdx.x == 0) info[blockIdx.x] = failed;
}
