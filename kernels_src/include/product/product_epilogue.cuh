// The end of a matrix product, in float32: a factor, a bias, another matrix, an activation.
#pragma once

#include <kernwright/activations.cuh>
#include <kernwright/elements.cuh>

namespace kernwright {

/// One number for each row (column), or with the step 0 one for all.
struct ProductScales {
  const float* data;
  int step;
};

/// The values in activation(alpha * a @ b + bias + beta * c): a bias for each column, c of the
/// result's shape and type, row-major. Scales multiply a @ b.
struct ProductEpilogueValues {
  const void* bias;
  const void* c;
  ProductScales row_scales, column_scales;
  float alpha, beta;
  Knobs<float> knobs;
};

/// No activation.
struct Same {
  __device__ static float value(float x, Knobs<float>) { return x; }
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
__device__ __forceinline__ float bias_at(const ProductEpilogueValues& epilogue, int column,
                                         int columns) {
  if (sizeof(Bias) == sizeof(NoBias) || column >= columns) return 0;
  return to_compute(static_cast<const Bias*>(epilogue.bias)[column]);
}

/// The bias of a matrix of a batch, each of which has one of `columns`.
template <typename Bias>
__device__ __forceinline__ const void* batch_bias(const ProductEpilogueValues& epilogue, int batch,
                                                  int columns) {
  return static_cast<const Bias*>(epilogue.bias) + static_cast<long long>(batch) * columns;
}

/// The operation on sums. kAdds: there is a c.
template <typename Activation, typename Bias, bool kAdds>
struct Epilogue {
  static constexpr bool kHasC = kAdds, kGated = false;
  static constexpr bool kScaled = false, kOneScale = false;

  __device__ static const void* matrix_bias(const ProductEpilogueValues& epilogue, int batch,
                                            int columns) {
    return batch_bias<Bias>(epilogue, batch, columns);
  }
  __device__ static Biases biases(const ProductEpilogueValues& epilogue, int column, int columns) {
    return {
        {bias_at<Bias>(epilogue, column, columns), bias_at<Bias>(epilogue, column + 1, columns)},
        {}};
  }
  __device__ static float finish(const ProductEpilogueValues& epilogue, float sum, float /*paired*/,
                                 const Biases& bias, int k, float c) {
    float total = epilogue.alpha * sum;
    if (sizeof(Bias) != sizeof(NoBias)) total += bias.direct[k];
    if (kAdds) total += epilogue.beta * c;
    return Activation::value(total, epilogue.knobs);
  }
};

/// activation(first half of the columns) * second half.
template <typename Activation, typename Bias>
struct GatedEpilogue {
  static constexpr bool kHasC = false, kGated = true;
  static constexpr bool kScaled = false, kOneScale = false;

  __device__ static const void* matrix_bias(const ProductEpilogueValues& epilogue, int batch,
                                            int columns) {
    return batch_bias<Bias>(epilogue, batch, 2 * columns);
  }
  __device__ static Biases biases(const ProductEpilogueValues& epilogue, int column, int columns) {
    Biases all = Epilogue<Activation, Bias, false>::biases(epilogue, column, columns);
    for (int k = 0; k < 2; ++k) {
      all.paired[k] =
          column + k < columns ? bias_at<Bias>(epilogue, columns + column + k, 2 * columns) : 0;
    }
    return all;
  }
  __device__ static float finish(const ProductEpilogueValues& epilogue, float sum, float paired,
                                 const Biases& bias, int k, float /*c*/) {
    return Activation::value(epilogue.alpha * sum + bias.direct[k], epilogue.knobs) *
           (epilogue.alpha * paired + bias.paired[k]);
  }
};

/// The epilogue of accumulators that are first multiplied by the scales of row and column. kOne:
/// one number each for all of them.
template <typename Base, bool kOne = false>
struct Scaled : Base {
  static constexpr bool kScaled = true, kOneScale = kOne;
};

/// Whether alpha is nothing but a factor of the sums. A caller's own expression has it elsewhere.
template <typename Finish>
constexpr bool kMultipliesByAlpha = false;
template <typename Activation, typename Bias, bool kAdds>
constexpr bool kMultipliesByAlpha<Epilogue<Activation, Bias, kAdds>> = true;
template <typename Activation, typename Bias>
constexpr bool kMultipliesByAlpha<GatedEpilogue<Activation, Bias>> = true;

/// The epilogue for one matrix of a batch, with biases and scales of `columns` for each matrix.
template <typename Finish>
__device__ __forceinline__ ProductEpilogueValues
batch_epilogue(const ProductEpilogueValues& epilogue, int batch, int columns) {
  ProductEpilogueValues made = epilogue;
  made.bias = Finish::matrix_bias(epilogue, batch, columns);
  if constexpr (Finish::kScaled) {
    made.column_scales.data +=
        static_cast<long long>(batch) * columns * epilogue.column_scales.step;
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

template <typename Sum, typename Finish>
__device__ __forceinline__ float scaled(Sum sum, const Factors<Finish>& rows, int row,
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
template <typename Out, typename Sum, typename Finish>
constexpr bool kKeepsSums = kIsWhole<Out> && kIsWhole<Sum> && !Finish::kScaled;

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
