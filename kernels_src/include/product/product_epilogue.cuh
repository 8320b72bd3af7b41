// The end of all products, in float32: factors, a bias, other matrices, an activation.
#pragma once

#include <kernwright/activations.cuh>
#include <kernwright/elements.cuh>

namespace kernwright {

/// One number for each row (column), or with the step 0 one for all.
struct ProductScales {
  const float* data;
  int step;
};

/// What kernels read in activation(alpha * a @ b + bias + beta * c) + residual: a bias for each
/// column, c or the residual of the result's shape and type. Scales multiply a @ b. Kernels of few
/// rows have these values alone, and `c` is the residual. SkinnyProblem has 128 bytes with them:
/// where it is larger, the compiler unrolls other loops of these kernels.
struct ProductEpilogueValues {
  const void* bias;
  const void* c;
  Int64 c_row, c_batch;  ///< distances in elements, of few rows; else c is row-major
  const float* column_scales;
  int column_step;
  float alpha;
};
/// Tiles add beta * c before the activation.
struct TileEpilogueValues : ProductEpilogueValues {
  ProductScales row_scales;
  float beta;
  Knobs<float> knobs;
};

/// No activation.
struct Same {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x;
  }
};

/// What every product makes of a sum. `Operands` says which operands there are, and reads them.
template <typename Activation, typename Operands>
__device__ __forceinline__ float apply_epilogue(const ProductEpilogueValues& epilogue, float sum,
                                                const Operands& operands) {
  float total = epilogue.alpha * sum;
  if (operands.has_scale()) total *= operands.scale();
  if (operands.has_bias()) total += operands.bias();
  if (operands.has_c()) total += operands.c();
  total = Activation::value(total, operands.knobs());
  if (operands.has_residual()) total += operands.residual();
  return total;
}

/// Whether results of few rows are what the activation makes of the accumulators.
__device__ __forceinline__ bool ends_plainly(const ProductEpilogueValues& epilogue) {
  return epilogue.alpha == 1 && epilogue.column_scales == nullptr && epilogue.bias == nullptr &&
         epilogue.c == nullptr;
}

/// The operands of one result of few rows, in memory; null where there is none.
template <typename T>
struct MemoryOperands {
  const ProductEpilogueValues& epilogue;
  UInt64 batch;
  unsigned row, column;

  __device__ bool has_scale() const { return epilogue.column_scales != nullptr; }
  __device__ float scale() const {
    return epilogue
        .column_scales[static_cast<UInt64>(column) * static_cast<unsigned>(epilogue.column_step)];
  }
  __device__ bool has_bias() const { return epilogue.bias != nullptr; }
  __device__ float bias() const { return to_compute(static_cast<const T*>(epilogue.bias)[column]); }
  __device__ static constexpr bool has_c() { return false; }
  __device__ static constexpr float c() { return 0; }
  __device__ static constexpr Knobs<float> knobs() { return {1, 1}; }
  __device__ bool has_residual() const { return epilogue.c != nullptr; }
  __device__ float residual() const {
    const Int64 at = static_cast<Int64>(batch) * epilogue.c_batch + row * epilogue.c_row + column;
    return to_compute(static_cast<const T*>(epilogue.c)[at]);
  }
};

/// The operands of one accumulator of a tile, in registers. The tile has applied the scales.
template <bool kHasBias, bool kHasC>
struct TileOperands {
  const TileEpilogueValues& epilogue;
  float bias_value, c_value;

  __device__ static constexpr bool has_scale() { return false; }
  __device__ static constexpr float scale() { return 1; }
  __device__ static constexpr bool has_bias() { return kHasBias; }
  __device__ float bias() const { return bias_value; }
  __device__ static constexpr bool has_c() { return kHasC; }
  __device__ float c() const { return epilogue.beta * c_value; }
  __device__ const Knobs<float>& knobs() const { return epilogue.knobs; }
  __device__ static constexpr bool has_residual() { return false; }
  __device__ static constexpr float residual() { return 0; }
};

struct NoBias {
  char none;
};
__device__ __forceinline__ float to_compute(NoBias) { return 0; }

/// The biases of two neighbouring columns, and of their partners in the second half of the columns.
struct Biases {
  float direct[2], paired[2];
};

template <typename Bias>
__device__ __forceinline__ float bias_at(const TileEpilogueValues& epilogue, int column,
                                         int columns) {
  if (sizeof(Bias) == sizeof(NoBias) || column >= columns) return 0;
  return to_compute(static_cast<const Bias*>(epilogue.bias)[column]);
}

/// The bias of a matrix of a batch, each of which has one of `columns`.
template <typename Bias>
__device__ __forceinline__ const void* batch_bias(const TileEpilogueValues& epilogue, int batch,
                                                  int columns) {
  return static_cast<const Bias*>(epilogue.bias) + static_cast<long long>(batch) * columns;
}

/// The operation on accumulators. kAdds: there is a c.
template <typename Activation, typename Bias, bool kAdds>
struct Epilogue {
  static constexpr bool kHasC = kAdds, kGated = false;
  static constexpr bool kScaled = false, kOneScale = false;

  __device__ static const void* matrix_bias(const TileEpilogueValues& epilogue, int batch,
                                            int columns) {
    return batch_bias<Bias>(epilogue, batch, columns);
  }
  __device__ static Biases biases(const TileEpilogueValues& epilogue, int column, int columns) {
    return {
        {bias_at<Bias>(epilogue, column, columns), bias_at<Bias>(epilogue, column + 1, columns)},
        {}};
  }
  __device__ static float finish(const TileEpilogueValues& epilogue, float sum, float /*paired*/,
                                 const Biases& bias, int k, float c) {
    const TileOperands<sizeof(Bias) != sizeof(NoBias), kAdds> operands{epilogue, bias.direct[k], c};
    return apply_epilogue<Activation>(epilogue, sum, operands);
  }
};

/// activation(first half of the columns) * second half.
template <typename Activation, typename Bias>
struct GatedEpilogue {
  static constexpr bool kHasC = false, kGated = true;
  static constexpr bool kScaled = false, kOneScale = false;

  __device__ static const void* matrix_bias(const TileEpilogueValues& epilogue, int batch,
                                            int columns) {
    return batch_bias<Bias>(epilogue, batch, 2 * columns);
  }
  __device__ static Biases biases(const TileEpilogueValues& epilogue, int column, int columns) {
    Biases all = Epilogue<Activation, Bias, false>::biases(epilogue, column, columns);
    for (int k = 0; k < 2; ++k) {
      all.paired[k] =
          column + k < columns ? bias_at<Bias>(epilogue, columns + column + k, 2 * columns) : 0;
    }
    return all;
  }
  __device__ static float finish(const TileEpilogueValues& epilogue, float sum, float paired,
                                 const Biases& bias, int k, float /*c*/) {
    const TileOperands<true, false> direct{epilogue, bias.direct[k], 0},
        other{epilogue, bias.paired[k], 0};
    return apply_epilogue<Activation>(epilogue, sum, direct) *
           apply_epilogue<Same>(epilogue, paired, other);
  }
};

/// The epilogue of accumulators that are first multiplied by the scales of row and column. kOne:
/// one number each for all of them.
template <typename Base, bool kOne = false>
struct Scaled : Base {
  static constexpr bool kScaled = true, kOneScale = kOne;
};

/// Whether alpha is nothing but a factor of the accumulators. A caller's own expression has it
/// elsewhere.
template <typename Finish>
constexpr bool kMultipliesByAlpha = false;
template <typename Activation, typename Bias, bool kAdds>
constexpr bool kMultipliesByAlpha<Epilogue<Activation, Bias, kAdds>> = true;
template <typename Activation, typename Bias>
constexpr bool kMultipliesByAlpha<GatedEpilogue<Activation, Bias>> = true;

/// The epilogue for one matrix of a batch, with biases and scales of `columns` for each matrix.
template <typename Finish>
__device__ __forceinline__ TileEpilogueValues batch_epilogue(const TileEpilogueValues& epilogue,
                                                             int batch, int columns) {
  TileEpilogueValues made = epilogue;
  made.bias = Finish::matrix_bias(epilogue, batch, columns);
  if constexpr (Finish::kScaled) {
    made.column_scales += static_cast<long long>(batch) * columns * epilogue.column_step;
  }
  return made;
}

/// Two scales of rows or columns, `apart` from each other; nothing where Finish has none.
template <typename Finish>
struct Factors {
  float value[2] = {1, 1};

  Factors() = default;
  __device__ __forceinline__ Factors(const ProductScales& scales, int first, int apart, int count) {
    if constexpr (Finish::kScaled) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        value[i] = scales.data[min(first + i * apart, count - 1) * scales.step];
    }
  }
};

__device__ __forceinline__ ProductScales column_scales(const TileEpilogueValues& epilogue) {
  return {epilogue.column_scales, epilogue.column_step};
}

template <typename Accumulator, typename Finish>
__device__ __forceinline__ float scaled(Accumulator sum, const Factors<Finish>& rows, int row,
                                        const Factors<Finish>& columns, int column) {
  const auto value = static_cast<float>(sum);
  if constexpr (Finish::kScaled) return value * (rows.value[row] * columns.value[column]);
  return value;
}

template <typename T>
constexpr bool kIsWhole = false;
template <>
constexpr bool kIsWhole<Int8> = true;
template <>
constexpr bool kIsWhole<Int32> = true;

/// Whether accumulators become the result without an epilogue, and wrap around.
template <typename Out, typename Accumulator, typename Finish>
constexpr bool kKeepsAccumulators = kIsWhole<Out>&& kIsWhole<Accumulator> && !Finish::kScaled;

/// A result in its type: rounded to the nearest, ties to even; int8 saturates, and is 0 for NaN.
template <typename Out>
__device__ __forceinline__ Out ended_as(float x) {
  if constexpr (kIsWhole<Out>) {
    return x == x ? static_cast<Out>(rintf(fminf(fmaxf(x, -128.0f), 127.0f))) : Out(0);
  } else {
    return from_compute<Out>(x);
  }
}

/// Writes two neighbouring columns. `second`: the second one exists; `by_two`: one write may store
/// both.
template <typename Out>
__device__ __forceinline__ void write_pair(Out* out, Out low, Out high, bool second, bool by_two) {
  if (by_two && second) {
    Pack<Out, 2> both;
    both.value[0] = low;
    both.value[1] = high;
    *reinterpret_cast<Pack<Out, 2>*>(out) = both;
    return;
  }
  out[0] = low;
  if (second) out[1] = high;
}

}  // namespace kernwright
