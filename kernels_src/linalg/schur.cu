// Eigenvalues of general matrices: shifted QR steps on Hessenberg matrices, then the vectors by
// substitution. All matrices are column-major.
#include <kernwright/matrices.cuh>

using namespace kernwright;

constexpr int kMostSteps = 60;  // for one eigenvalue: two or three are usual
constexpr int kManySteps = 12;

/// How many shifts a step takes: two, which are conjugate, keep real matrices real.
template <typename T>
struct ShiftTraits {
  static constexpr int kCount = 2;
};
template <typename P>
struct ShiftTraits<Complex<P>> {
  static constexpr int kCount = 1;
};

/// A column-major matrix.
template <typename T>
struct Square {
  T* data;
  int n;
  __device__ T& operator()(int row, int column) const {
    return data[static_cast<long long>(column) * n + row];
  }
};

/// A reflection of up to three neighbours.
template <typename T>
struct Bulge {
  static constexpr int kMost = ShiftTraits<T>::kCount + 1;
  T v[kMost];
  T tau;
  Part<T> beta;
};

template <typename T>
__device__ Bulge<T> make_bulge(const T (&x)[Bulge<T>::kMost]) {
  using P = Part<T>;
  Bulge<T> made;
  P size = 0, rest = 0;
  for (const T& value : x) size += size_of(value);
  const P factor = size > 0 ? 1 / size : P(0);  // no square that underflows
  for (int i = 1; i < Bulge<T>::kMost; ++i) rest += squared_modulus(x[i] * factor);
  const Reflection<T> found = reflection(x[0] * factor, rest);
  made.v[0] = from_real<T>(1);
  for (int i = 1; i < Bulge<T>::kMost; ++i) made.v[i] = x[i] * factor * found.factor;
  made.tau = found.tau, made.beta = found.beta * size;
  return made;
}

/// From the left, to columns [from, to); rows from `row` on, as many as `width`.
template <typename T>
__device__ void reflect_rows(Square<T> h, const Bulge<T>& bulge, int row, int width, int from,
                             int to) {
  for (int j = from + threadIdx.x; j < to; j += blockDim.x) {
    T* const x = &h(row, j);
    T sum = x[0];
    for (int i = 1; i < Bulge<T>::kMost; ++i) {
      if (i < width) sum = sum + math_conj(bulge.v[i]) * x[i];
    }
    sum = sum * math_conj(bulge.tau);
    for (int i = 0; i < Bulge<T>::kMost; ++i) {
      if (i < width) x[i] = x[i] - bulge.v[i] * sum;
    }
  }
}

/// From the right, to rows [from, to); columns from `column` on.
template <typename T>
__device__ void reflect_columns(Square<T> h, const Bulge<T>& bulge, int column, int width, int from,
                                int to) {
  for (int i = from + threadIdx.x; i < to; i += blockDim.x) {
    T sum = h(i, column);
    for (int j = 1; j < Bulge<T>::kMost; ++j) {
      if (j < width) sum = sum + h(i, column + j) * bulge.v[j];
    }
    sum = sum * bulge.tau;
    for (int j = 0; j < Bulge<T>::kMost; ++j) {
      if (j < width) h(i, column + j) = h(i, column + j) - sum * math_conj(bulge.v[j]);
    }
  }
}

struct Highest {
  __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

/// The first row of the part above `high` without a small subdiagonal element. Small is relative to
/// its neighbours, after many steps to the largest of the matrix, about 1.
template <typename T>
__device__ int active_start(Square<T> h, int high, int steps) {
  using P = Part<T>;
  const P least = steps < kManySteps ? 0 : 1;
  int found = 0;
  for (int k = 1 + threadIdx.x; k <= high; k += blockDim.x) {
    const P around = size_of(h(k - 1, k - 1)) + size_of(h(k, k)) + least;
    const P off = size_of(h(k, k - 1));
    if (off <= epsilon<P>() * around || off < Real<P>::kTiny) found = k;
  }
  found = block_total(found, Highest());
  __syncthreads();
  if (threadIdx.x == 0 && found > 0) h(found, found - 1) = from_real<T>(0);
  __syncthreads();
  return found;
}

/// The first column of (H - s1)(H - s2), where the shifts are the eigenvalues at the lower end.
template <typename P>
__device__ void first_column(Square<P> h, int low, int high, int steps, P (&x)[3]) {
  using M = Real<P>;
  P trace = h(high, high) + h(high - 1, high - 1);
  P determinant = h(high, high) * h(high - 1, high - 1) - h(high, high - 1) * h(high - 1, high);
  if (steps % 10 == 0) {  // usual shifts go round in circles
    const P size = M::abs(h(high, high - 1)) + M::abs(h(high - 1, high - 2));
    const P near = h(high, high) + P(0.75) * size;
    trace = 2 * near, determinant = near * near + P(0.4375) * size * size;
  }
  const P a = h(low, low), below = h(low + 1, low);
  x[0] = a * a + h(low, low + 1) * below - trace * a + determinant;
  x[1] = below * (a + h(low + 1, low + 1) - trace);
  x[2] = below * h(low + 2, low + 1);
}
/// The first column of H - s, where s is the eigenvalue at the lower end that is nearest.
template <typename P>
__device__ void first_column(Square<Complex<P>> h, int low, int high, int steps,
                             Complex<P> (&x)[2]) {
  using C = Complex<P>;
  const C last = h(high, high), product = h(high - 1, high) * h(high, high - 1);
  C shift = last;
  if (steps % 10 == 0) {
    shift = last + C{P(0.75) * size_of(h(high, high - 1)), 0};
  } else {
    const C half = (h(high - 1, high - 1) - last) * P(0.5);
    const C root = complex_sqrt(half * half + product);
    const C sum = half + root, difference = half - root;
    const C larger = squared_modulus(sum) > squared_modulus(difference) ? sum : difference;
    if (squared_modulus(larger) > 0) shift = last - product / larger;
  }
  x[0] = h(low, low) - shift;
  x[1] = h(low + 1, low);
}

/// Splits a block of two whose eigenvalues are real; others stay. Real matrices alone.
template <typename T, bool Vectors>
__device__ void split_pair(Square<T> h, Square<T> z, int high) {
  using P = Part<T>;
  const P a = real_component(h(high - 1, high - 1)), b = real_component(h(high - 1, high));
  const P c = real_component(h(high, high - 1)), d = real_component(h(high, high));
  const P half = (a - d) / 2, square = half * half + b * c;
  __syncthreads();
  if (square < 0) return;
  T x[Bulge<T>::kMost] = {};
  x[0] = from_real<T>(half + Real<P>::copysign(Real<P>::sqrt(square), half));
  x[1] = from_real<T>(c);
  const Bulge<T> bulge = make_bulge(x);
  const int n = h.n;
  reflect_rows(h, bulge, high - 1, 2, high - 1, Vectors ? n : high + 1);
  __syncthreads();
  reflect_columns(h, bulge, high - 1, 2, Vectors ? 0 : high - 1, high + 1);
  if (Vectors) reflect_columns(z, bulge, high - 1, 2, 0, n);
  __syncthreads();
  if (threadIdx.x == 0) h(high, high - 1) = from_real<T>(0);
  __syncthreads();
}

/// One step over rows `low` to `high`: a bulge is chased down the diagonal.
template <typename T, bool Vectors>
__device__ void qr_step(Square<T> h, Square<T> z, int low, int high, int steps) {
  constexpr int kMost = Bulge<T>::kMost;
  const int n = h.n;
  for (int k = low; k < high; ++k) {
    const int width = high - k + 1 < kMost ? high - k + 1 : kMost;
    T x[kMost];
    if (k == low) {
      first_column(h, low, high, steps, x);
    } else {
      for (int i = 0; i < kMost; ++i) x[i] = i < width ? h(k + i, k - 1) : from_real<T>(0);
    }
    const Bulge<T> bulge = make_bulge(x);
    __syncthreads();  // the column is read
    reflect_rows(h, bulge, k, width, k, Vectors ? n : high + 1);
    if (k > low && threadIdx.x < width) {
      h(k + threadIdx.x, k - 1) = from_real<T>(threadIdx.x == 0 ? bulge.beta : 0);
    }
    __syncthreads();
    const int last = k + kMost < high ? k + kMost : high;
    reflect_columns(h, bulge, k, width, Vectors ? 0 : low, last + 1);
    if (Vectors) reflect_columns(z, bulge, k, width, 0, n);
    __syncthreads();
  }
}

/// The eigenvalue in row k of a triangular matrix.
template <typename P>
__device__ Complex<P> schur_value(Square<Complex<P>> h, int k) {
  return h(k, k);
}
/// Real ones may have blocks of two on the diagonal, for conjugate eigenvalues.
template <typename P>
__device__ Complex<P> schur_value(Square<P> h, int k) {
  const bool upper = k + 1 < h.n && h(k + 1, k) != 0, lower = k > 0 && h(k, k - 1) != 0;
  if (!upper && !lower) return {h(k, k), 0};
  const int i = upper ? k : k - 1;
  const P half = (h(i, i) - h(i + 1, i + 1)) / 2;
  const P square = half * half + h(i, i + 1) * h(i + 1, i);
  const P root = square < 0 ? Real<P>::sqrt(-square) : square * 0;
  return {h(i + 1, i + 1) + half, upper ? root : -root};
}

/// Hessenberg matrices [n, n], with their subdiagonal in `below`, become triangular (of real ones,
/// with blocks of two for conjugate eigenvalues); with `Vectors` the columns of `basis` follow. The
/// eigenvalues times `scales` go to `values`. NaN without convergence.
template <typename T, bool Vectors>
__global__ void __launch_bounds__(256) schur(T* matrices, const T* below, const Part<T>* scales,
                                             T* basis, Complex<Part<T>>* values, int n) {
  using P = Part<T>;
  const long long batch = blockIdx.x;
  const Square<T> h = {matrices + batch * n * n, n};
  const Square<T> z = {basis + (Vectors ? batch * n * n : 0), n};
  const long long count = static_cast<long long>(n) * n;
  for (long long at = threadIdx.x; at < count; at += blockDim.x) {
    const long long row = at % n, column = at / n;
    if (row == column + 1) h.data[at] = below[batch * (n - 1) + column];
    if (row > column + 1) h.data[at] = from_real<T>(0);
  }
  __syncthreads();
  int steps = 0;
  for (int high = n - 1; high > 0;) {
    const int low = active_start(h, high, steps);
    if (low == high) {
      --high, steps = 0;
    } else if (ShiftTraits<T>::kCount == 2 && low + 1 == high) {
      split_pair<T, Vectors>(h, z, high);
      high -= 2, steps = 0;
    } else if (++steps > kMostSteps) {
      for (long long at = threadIdx.x; at < count; at += blockDim.x) {
        h.data[at] = from_real<T>(Real<P>::nan());
      }
      __syncthreads();
      break;
    } else {
      qr_step<T, Vectors>(h, z, low, high, steps);
    }
  }
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    values[batch * n + k] = schur_value(h, k) * scales[batch];
  }
}

/// x[i] -= (column of T)[i] * factor for i < count, by one warp.
template <typename T, typename P>
__device__ void subtract(Complex<P>* x, const T* column, Complex<P> factor, int count) {
  for (int i = threadIdx.x % 32; i < count; i += 32) x[i] = x[i] - factor * column[i];
}

template <typename P>
__device__ Complex<P> nonzero(Complex<P> x) {
  return size_of(x) < epsilon<P>() ? Complex<P>{epsilon<P>(), 0} : x;
}

/// Solves [a b; c d] (x, y) = (first, second) by elimination with partial pivoting.
template <typename P>
__device__ void solve_pair(Complex<P> a, Complex<P> b, Complex<P> c, Complex<P> d, Complex<P> first,
                           Complex<P> second, Complex<P>& x, Complex<P>& y) {
  using C = Complex<P>;
  const bool exchanged = size_of(c) > size_of(a);
  const C pivot = nonzero(exchanged ? c : a), beside = exchanged ? d : b;
  const C factor = (exchanged ? a : c) / pivot;
  const C top = exchanged ? second : first, bottom = exchanged ? first : second;
  y = (bottom - factor * top) / nonzero((exchanged ? b : d) - factor * beside);
  x = (top - beside * y) / pivot;
}

/// Solves (T - value) x = 0 upwards from row `top` - 1, where x[i] holds the right sides above.
template <typename T, typename P>
__device__ void substitute(Square<T> t, Complex<P> value, Complex<P>* x, int top, int end) {
  using C = Complex<P>;
  for (int j = top - 1; j >= 0; --j) {
    __syncwarp();
    const bool pair = j > 0 && size_of(t(j, j - 1)) != 0;
    const int i = pair ? j - 1 : j;
    const C last = C{real_component(t(j, j)), imaginary_component(t(j, j))} - value;
    C lower = x[j], upper = {0, 0};
    if (pair) {
      solve_pair(C{real_component(t(i, i)), 0} - value, C{real_component(t(i, j)), 0},
                 C{real_component(t(j, i)), 0}, last, x[i], x[j], upper, lower);
    } else {
      lower = lower / nonzero(last);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      x[j] = lower;
      if (pair) x[i] = upper;
    }
    subtract(x, &t(0, j), lower, i);
    if (pair) subtract(x, &t(0, i), upper, i);
    __syncwarp();
    const P size = size_of(lower) + size_of(upper);
    if (size > Real<P>::kSquareFits) {
      for (int k = threadIdx.x % 32; k < end; k += 32) x[k] = x[k] * (1 / size);
    }
    j = i;
  }
  __syncwarp();
}

template <typename P>
struct LargestPart {
  P size;
  int at;
};
struct LargerPart {
  template <typename P>
  __device__ LargestPart<P> operator()(LargestPart<P> a, LargestPart<P> b) const {
    return b.size > a.size || (b.size == a.size && b.at < a.at) ? b : a;
  }
};

/// Length 1, and a real number where the absolute value is the largest.
template <typename P>
__device__ void normalise(Complex<P>* x, int n) {
  LargestPart<P> largest = {0, n};
  for (int i = threadIdx.x % 32; i < n; i += 32) {
    largest = LargerPart()(largest, {size_of(x[i]), i});
  }
  largest = warp_reduce(largest, LargerPart());
  const P shrink = largest.size > 0 ? 1 / largest.size : P(1);
  P sum = 0;
  LargestPart<P> chosen = {0, n};
  for (int i = threadIdx.x % 32; i < n; i += 32) {
    const P square = squared_modulus(x[i] * shrink);
    sum += square;
    chosen = LargerPart()(chosen, {square, i});
  }
  sum = warp_reduce(sum, Sum());
  chosen = warp_reduce(chosen, LargerPart());
  Complex<P> factor = {shrink / Real<P>::sqrt(sum), 0};
  if (chosen.at < n && x[chosen.at].imag != 0) {
    const Complex<P> there = x[chosen.at] * shrink;
    factor = math_conj(there) * (factor.real / Real<P>::sqrt(chosen.size));
  }
  __syncwarp();
  const bool turned = factor.imag != 0;
  for (int i = threadIdx.x % 32; i < n; i += 32) {
    x[i] = turned ? x[i] * factor : x[i] * factor.real;
    if (turned && i == chosen.at) x[i].imag = 0;
  }
}

/// Eigenvectors of A = Z T Z^H as the columns of `vectors` [n, n]; a warp makes one, and `tiles`
/// blocks those of a matrix. `work` has as many elements.
template <typename T>
__global__ void __launch_bounds__(128)
    schur_vectors(T* matrices, const T* basis, Complex<Part<T>>* work, Complex<Part<T>>* vectors,
                  int n, int tiles) {
  using C = Complex<Part<T>>;
  const long long batch = blockIdx.x / tiles;
  const int k = static_cast<int>(blockIdx.x % tiles * (blockDim.x / 32) + threadIdx.x / 32);
  if (k >= n) return;
  const int lane = threadIdx.x % 32;
  const Square<T> t = {matrices + batch * n * n, n};
  const T* const z = basis + batch * n * n;
  C* const x = work + (batch * n + k) * n;
  C* const v = vectors + (batch * n + k) * n;
  const C value = schur_value(t, k);
  const bool upper = k + 1 < n && size_of(t(k + 1, k)) != 0;
  const bool lower = k > 0 && size_of(t(k, k - 1)) != 0;
  const int first = lower ? k - 1 : k, end = upper || lower ? first + 2 : k + 1;
  C a = {1, 0}, b = {0, 0};
  if (end - first == 2) {
    const Part<T> right = real_component(t(first, first + 1)),
                  down = real_component(t(first + 1, first));
    if (Real<Part<T>>::abs(right) >= Real<Part<T>>::abs(down)) {
      b = (value - C{real_component(t(first, first)), 0}) * (1 / right);
    } else {
      a = (value - C{real_component(t(first + 1, first + 1)), 0}) * (1 / down), b = {1, 0};
    }
  }
  for (int i = lane; i < end; i += 32) x[i] = i < first ? C{0, 0} : i == first ? a : b;
  __syncwarp();
  subtract(x, &t(0, first), a, first);
  if (end - first == 2) subtract(x, &t(0, first + 1), b, first);
  substitute(t, value, x, first, end);
  for (int i = lane; i < n; i += 32) {
    C sum = {0, 0};
    for (int j = 0; j < end; ++j) sum = sum + x[j] * z[static_cast<long long>(j) * n + i];
    v[i] = sum;
  }
  __syncwarp();
  normalise(v, n);
}
