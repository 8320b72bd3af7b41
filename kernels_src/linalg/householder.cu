// Reflections that make matrices triangular, tridiagonal or Hessenberg, and their products. The
// matrices are column-major; one block takes one matrix where nothing else is said.
#include <kernwright/matrices.cuh>

using namespace kernwright;

extern __shared__ __align__(16) unsigned char pool[];

/// Row-major matrices [n, n] column-major and divided by a power of two, which goes to `scales`. Of
/// Hermitian ones the lower triangle is read.
template <typename T>
__global__ void __launch_bounds__(512)
    fill_columns(const T* matrices, T* result, Part<T>* scales, int n, bool hermitian) {
  const long long count = static_cast<long long>(n) * n;
  const T* const a = matrices + blockIdx.x * count;
  T* const filled = result + blockIdx.x * count;
  for (long long at = threadIdx.x; at < count; at += blockDim.x) {
    const long long i = at % n, j = at / n;
    const T value = i >= j || !hermitian ? a[i * n + j] : math_conj(a[j * n + i]);
    filled[at] = hermitian && i == j ? from_real<T>(real_component(value)) : value;
  }
  __syncthreads();
  const Part<T> scale = block_scale(filled, count);
  __syncthreads();
  for (long long at = threadIdx.x; at < count; at += blockDim.x) {
    filled[at] = filled[at] * (1 / scale);
  }
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
}

/// Matrices [m, n] become R, and below the diagonal the reflections of Q; `taus` has min(m, n)
/// each.
template <typename T>
__global__ void __launch_bounds__(512) qr_factor(T* matrices, T* taus, int m, int n, bool shared) {
  const long long count = static_cast<long long>(m) * n;
  const int steps = m < n ? m : n;
  T* const matrix = matrices + blockIdx.x * count;
  const Part<T> scale = block_scale(matrix, count);
  T* const a = stage(matrix, count, shared ? pool : nullptr);
  for (long long i = threadIdx.x; i < count; i += blockDim.x) a[i] = a[i] * (1 / scale);
  __syncthreads();
  for (int k = 0; k < steps; ++k) {
    T* const column = a + static_cast<long long>(k) * m + k;
    const Reflection<T> made = make_reflection(column, m - k);
    for (int j = k + 1 + threadIdx.x / 32; j < n; j += blockDim.x / 32) {
      reflect_column(column, math_conj(made.tau), a + static_cast<long long>(j) * m + k, m - k);
    }
    if (threadIdx.x == 0) {
      taus[static_cast<long long>(blockIdx.x) * steps + k] = made.tau;
      *column = from_real<T>(made.beta);
    }
    __syncthreads();
  }
  for (long long i = threadIdx.x; i < count; i += blockDim.x) {
    if (i % m <= i / m) a[i] = a[i] * scale;
  }
  unstage(matrix, a, count);
}

/// R [rows, n] of the first rows of `matrices` [m, n], row-major: a thread makes one element.
template <typename T>
__global__ void __launch_bounds__(256)
    qr_upper(const T* matrices, T* result, long long total, int m, int n, int rows) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < total;
       at += step) {
    const long long row = at / n % rows, column = at % n, matrix = at / n / rows;
    const T* const a = matrices + matrix * m * n;
    result[at] = row <= column ? a[column * m + row] : from_real<T>(0);
  }
}

/// The first `columns` columns of the product of reflections: `steps` of them in `matrices`
/// [m, stored], where that of column k begins in row k + offset. A warp makes a column, and
/// `tiles` blocks those of a matrix. With `signed_by_diagonal` column k has the sign of R[k, k].
template <typename T>
__global__ void __launch_bounds__(512)
    form_q(const T* matrices, const T* taus, T* result, int m, int stored, int steps, int offset,
           int columns, int tiles, bool signed_by_diagonal) {
  const long long batch = blockIdx.x / tiles;
  const int j = static_cast<int>(blockIdx.x % tiles * (blockDim.x / 32) + threadIdx.x / 32);
  if (j >= columns) return;
  const int lane = threadIdx.x % 32;
  const T* const a = matrices + batch * m * stored;
  T* const q = result + (batch * columns + j) * m;
  Part<T> one = 1;
  if (signed_by_diagonal && j < steps && real_component(a[static_cast<long long>(j) * m + j]) < 0)
    one = -1;
  for (int i = lane; i < m; i += 32) q[i] = from_real<T>(i == j ? one : 0);
  __syncwarp();
  for (int k = (j - offset < steps ? j - offset : steps - 1); k >= 0; --k) {
    const int row = k + offset;
    const T tau = taus[batch * steps + k];
    reflect_column(a + static_cast<long long>(k) * m + row, tau, q + row, m - row);
    __syncwarp();
  }
}

/// Matrices [n, n] become upper Hessenberg: H = Q^H A Q, with the reflections of Q below; `taus`
/// has n - 1 each. `below` gets the diagonal below the main one.
template <typename T>
__global__ void __launch_bounds__(512) hessenberg(T* matrices, T* taus, T* below, int n) {
  T* const a = matrices + static_cast<long long>(blockIdx.x) * n * n;
  taus += static_cast<long long>(blockIdx.x) * (n - 1);
  below += static_cast<long long>(blockIdx.x) * (n - 1);
  for (int k = 0; k + 1 < n; ++k) {
    T* const column = a + static_cast<long long>(k) * n + k + 1;
    const int rest = n - k - 1;
    const Reflection<T> made = make_reflection(column, rest);
    for (int j = k + 1 + threadIdx.x / 32; j < n; j += blockDim.x / 32) {
      reflect_column(column, math_conj(made.tau), a + static_cast<long long>(j) * n + k + 1, rest);
    }
    if (threadIdx.x == 0) taus[k] = made.tau, below[k] = from_real<T>(made.beta);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      T* const row = a + static_cast<long long>(k + 1) * n + i;
      T sum = row[0];
      for (int j = 1; j < rest; ++j) sum = sum + row[static_cast<long long>(j) * n] * column[j];
      sum = sum * made.tau;
      row[0] = row[0] - sum;
      for (int j = 1; j < rest; ++j) {
        T& element = row[static_cast<long long>(j) * n];
        element = element - sum * math_conj(column[j]);
      }
    }
    __syncthreads();
  }
}

/// Hermitian matrices [n, n], both triangles filled, become real and tridiagonal: `diagonal` has n
/// each, `beside` n - 1 (of n places), `taus` n - 1; the reflections stay below the diagonal.
/// `work` has n each.
template <typename T>
__global__ void __launch_bounds__(512)
    tridiagonal(T* matrices, T* taus, Part<T>* diagonal, Part<T>* beside, T* work, int n) {
  const long long batch = blockIdx.x;
  T* const a = matrices + batch * n * n;
  T* const p = work + batch * n;
  taus += batch * (n - 1), diagonal += batch * n, beside += batch * n;
  for (int k = 0; k + 1 < n; ++k) {
    T* const v = a + static_cast<long long>(k) * n + k + 1;
    const int rest = n - k - 1;
    const Reflection<T> made = make_reflection(v, rest);
    if (threadIdx.x == 0) {
      taus[k] = made.tau, beside[k] = made.beta;
      v[0] = from_real<T>(1);
    }
    __syncthreads();
    T* const block = a + static_cast<long long>(k + 1) * n + k + 1;
    for (int j = threadIdx.x / 32; j < rest; j += blockDim.x / 32) {
      const T sum = warp_product(block + static_cast<long long>(j) * n, v, rest);
      if (threadIdx.x % 32 == 0) p[j] = made.tau * sum;
    }
    __syncthreads();
    T product = from_real<T>(0);
    for (int i = threadIdx.x; i < rest; i += blockDim.x) product = product + math_conj(v[i]) * p[i];
    product = block_total(product, Sum());
    const Part<T> half = real_component(math_conj(made.tau) * product) / 2;
    __syncthreads();
    for (int i = threadIdx.x; i < rest; i += blockDim.x) p[i] = p[i] - v[i] * half;
    __syncthreads();
    for (int j = threadIdx.x / 32; j < rest; j += blockDim.x / 32) {
      T* const column = block + static_cast<long long>(j) * n;
      const T vj = math_conj(v[j]), pj = math_conj(p[j]);
      for (int i = threadIdx.x % 32; i < rest; i += 32) {
        column[i] = column[i] - v[i] * pj - p[i] * vj;
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    diagonal[i] = real_component(a[static_cast<long long>(i) * n + i]);
  }
}
