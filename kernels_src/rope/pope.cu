// Positions as magnitudes and angles (PoPE), and scales of queries by position (iRoPE).
#include <kernwright/activations.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/tokens.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Cosine and sine of the angle of element `col` at a position, plus `shift`.
struct Angle {
  float cosine, sine;

  __device__ Angle(const float* cosines, const float* sines, long long rows, int dim,
                   long long position, int col, const float* shift) {
    const bool inside = position >= 0 && position < rows;
    const long long at = (inside ? position : 0) * dim + col;
    cosine = inside ? cosines[at] : __int_as_float(0x7fffffff);
    sine = inside ? sines[at] : __int_as_float(0x7fffffff);
    if (shift == nullptr) return;
    float s, c;
    sincosf(*shift, &s, &c);
    const float turned = cosine * c - sine * s;
    sine = sine * c + cosine * s;
    cosine = turned;
  }
};

/// x (.., dim) becomes (.., 2 dim): softplus(x) cos(angle), then softplus(x) sin(angle). The shift
/// of head h, element c is shifts[h * shift_stride + c]. Backward: `from` is x, `grad` the gradient
/// of the result, and the gradient of x is written.
template <typename T, typename Id, bool Backward>
__global__ void __launch_bounds__(kThreads)
    pope(const TokenArray<T> x, const T* __restrict__ grad, const TokenStrides grad_strides,
         const float* __restrict__ cosines, const float* __restrict__ sines, long long rows,
         const float* __restrict__ shifts, int shift_stride, const Positions<Id> positions,
         int dim, unsigned tokens_each) {
  const auto work = [&](unsigned batch, unsigned token, unsigned item) {
    const int head = static_cast<int>(item) / dim, col = static_cast<int>(item) % dim;
    const float* const shift =
        shifts == nullptr ? nullptr : shifts + static_cast<long long>(head) * shift_stride + col;
    const Angle angle(cosines, sines, rows, dim, positions.at(batch, token), col, shift);
    const Compute<T> value = to_compute(x.source(batch, token, head)[col]);
    T* const to = x.target(batch, token, head);
    if constexpr (Backward) {
      const T* const above = grad + batch * grad_strides.batch + token * grad_strides.token +
                             head * grad_strides.head;
      const Compute<T> along =
          to_compute(above[col]) * angle.cosine + to_compute(above[col + dim]) * angle.sine;
      to[col] = from_compute<T>(along * sigmoid(value));
    } else {
      const Compute<T> magnitude = softplus(value);
      to[col] = from_compute<T>(magnitude * angle.cosine);
      to[col + dim] = from_compute<T>(magnitude * angle.sine);
    }
  };
  for_token_items<kThreads>(positions, static_cast<unsigned>(x.heads) * dim, tokens_each, work);
}

/// Block (tile, chunk) adds up what its chunk of tokens does to the shifts of its 256 columns, one
/// for each head and element: sums[chunk][column].
template <typename T, typename Id>
__global__ void __launch_bounds__(kThreads)
    pope_shifts(const TokenArray<T> x, const T* __restrict__ grad, const TokenStrides grad_strides,
                const float* __restrict__ cosines, const float* __restrict__ sines, long long rows,
                const float* __restrict__ shifts, int shift_stride, const Positions<Id> positions,
                int dim, long long chunk, float* __restrict__ sums) {
  const int columns = x.heads * dim;
  const int column = static_cast<int>(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= columns) return;
  const int head = column / dim, col = column % dim;
  const float* const shift = shifts + static_cast<long long>(head) * shift_stride + col;
  const long long all = static_cast<long long>(positions.batches) * positions.tokens;
  const long long begin = blockIdx.y * chunk, end = min(begin + chunk, all);
  Compute<T> sum = 0;
#pragma unroll 4
  for (long long flat = begin; flat < end; ++flat) {
    const unsigned batch = static_cast<unsigned>(flat / positions.tokens);
    const unsigned token =
        static_cast<unsigned>(flat - static_cast<long long>(batch) * positions.tokens);
    const Angle angle(cosines, sines, rows, dim, positions.at(batch, token), col, shift);
    const T* const above = grad + batch * grad_strides.batch + token * grad_strides.token +
                           head * grad_strides.head;
    const Compute<T> across =
        to_compute(above[col + dim]) * angle.cosine - to_compute(above[col]) * angle.sine;
    sum += softplus(to_compute(x.source(batch, token, head)[col])) * across;
  }
  sums[blockIdx.y * static_cast<long long>(columns) + column] = static_cast<float>(sum);
}

/// Each token's heads times log(floor((position + 1) / floor_scale) + 1) * slope + 1.
template <typename T, typename Id, int N>
__global__ void __launch_bounds__(kThreads)
    scale_tokens(const TokenArray<T> x, const Positions<Id> positions, double floor_scale,
                 double slope, int dim, unsigned tokens_each) {
  const int packs = dim / N;
  const auto work = [&](unsigned batch, unsigned token, unsigned item) {
    const int head = static_cast<int>(item) / packs;
    const int col = static_cast<int>(item) % packs * N;
    const double steps = floor(static_cast<double>(positions.at(batch, token) + 1) / floor_scale);
    const Compute<T> scale =
        steps == 0 ? Compute<T>(1) : static_cast<Compute<T>>(log(steps + 1) * slope + 1);
    Pack<T, N> pack =
        *reinterpret_cast<const Pack<T, N>*>(x.source(batch, token, head) + col);
#pragma unroll
    for (int j = 0; j < N; ++j)
      pack.value[j] = from_compute<T>(to_compute(pack.value[j]) * scale);
    *reinterpret_cast<Pack<T, N>*>(x.target(batch, token, head) + col) = pack;
  };
  for_token_items<kThreads>(positions, static_cast<unsigned>(x.heads) * packs, tokens_each, work);
}
