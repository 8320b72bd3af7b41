// Batched matrix products of any strides, by tiles in shared memory. Right for every element type:
// integers and complex numbers, and what is too small for the kernels of one type.
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kTile = 64;   // rows and columns of a block's part of the product
constexpr int kDepth = 16;  // of a step along the inner dimension
constexpr int kThreads = 256;
constexpr int kSide = 4;  // each thread has kSide * kSide elements
constexpr int kMaxBatchDims = 6;

/// The dimensions in front, the innermost first, with strides in bytes.
struct Batch {
  long long extent[kMaxBatchDims], a[kMaxBatchDims], b[kMaxBatchDims];
  int ndim;
};

/// Strides in bytes of rows and columns; the result is row-major.
struct Matrices {
  const char* a;
  const char* b;
  void* c;
  long long rows, columns, inner;
  long long a_row, a_column, b_row, b_column;
};

template <typename T>
struct Accumulator {
  Compute<T> sum = 0;
  __device__ void add(Compute<T> x, Compute<T> y) { sum += x * y; }
  __device__ T result() const { return from_compute<T>(sum); }
};
template <>
struct Accumulator<Bool> {
  bool sum = false;
  __device__ void add(bool x, bool y) { sum = sum || (x && y); }
  __device__ Bool result() const { return from_compute<Bool>(sum); }
};
template <typename Part>
struct Accumulator<Complex<Part>> {
  Complex<Part> sum = {0, 0};
  __device__ void add(Complex<Part> x, Complex<Part> y) {
    sum.real += x.real * y.real - x.imag * y.imag;
    sum.imag += x.real * y.imag + x.imag * y.real;
  }
  __device__ Complex<Part> result() const { return sum; }
};

template <typename T>
__device__ __forceinline__ Compute<T> nothing() {
  return Compute<T>{};
}

/// A block computes a tile of each product whose number is blockIdx.z plus a multiple of gridDim.z.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    matmul(const Matrices m, const Batch batch, long long products, long long row_tiles) {
  __shared__ Compute<T> left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const int row_thread = threadIdx.x / (kTile / kSide);
  const int column_thread = threadIdx.x % (kTile / kSide);
  for (long long product = blockIdx.z; product < products; product += gridDim.z) {
    const char* a = m.a;
    const char* b = m.b;
    T* const c = static_cast<T*>(m.c) + product * m.rows * m.columns;
    long long rest = product;
#pragma unroll 1  // divisions are long
    for (int d = 0; d < batch.ndim; ++d) {
      const long long at = rest % batch.extent[d];
      rest /= batch.extent[d];
      a += at * batch.a[d];
      b += at * batch.b[d];
    }
    for (long long tile = blockIdx.y; tile < row_tiles; tile += gridDim.y) {
      const long long row0 = tile * kTile, column0 = static_cast<long long>(blockIdx.x) * kTile;
      Accumulator<T> accumulators[kSide][kSide];
      for (long long k0 = 0; k0 < m.inner; k0 += kDepth) {
        for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
          // Neighbouring threads read neighbouring elements of whichever dimension is the denser.
          const bool deep = m.a_column <= m.a_row;
          const int k = deep ? i % kDepth : i / kTile, row = deep ? i / kDepth : i % kTile;
          const bool inside = k0 + k < m.inner && row0 + row < m.rows;
          left[k][row] = inside ? to_compute(*reinterpret_cast<const T*>(
                                      a + (row0 + row) * m.a_row + (k0 + k) * m.a_column))
                                : nothing<T>();
          const bool wide = m.b_column <= m.b_row;
          const int depth = wide ? i / kTile : i % kDepth, column = wide ? i % kTile : i / kDepth;
          const bool there = k0 + depth < m.inner && column0 + column < m.columns;
          right[depth][column] =
              there ? to_compute(*reinterpret_cast<const T*>(b + (k0 + depth) * m.b_row +
                                                             (column0 + column) * m.b_column))
                    : nothing<T>();
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
          if (k0 + k >= m.inner) break;  // 0 * NaN is not 0
          Compute<T> x[kSide], y[kSide];
#pragma unroll
          for (int i = 0; i < kSide; ++i) {
            x[i] = left[k][row_thread + i * (kTile / kSide)];
            y[i] = right[k][column_thread + i * (kTile / kSide)];
          }
#pragma unroll
          for (int i = 0; i < kSide; ++i) {
#pragma unroll
            for (int j = 0; j < kSide; ++j) accumulators[i][j].add(x[i], y[j]);
          }
        }
        __syncthreads();
      }
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const long long row = row0 + row_thread + i * (kTile / kSide);
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
          const long long column = column0 + column_thread + j * (kTile / kSide);
          if (row >= m.rows || column >= m.columns) continue;
          c[row * m.columns + column] = accumulators[i][j].result();
        }
      }
    }
  }
}
