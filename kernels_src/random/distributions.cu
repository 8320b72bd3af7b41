// Fills arrays with random numbers: element i is a function of seed, offset and i alone.
#include <kernwright/random_fills.cuh>

using namespace kernwright;

/// `counter`, if any, is added to `offset`: it lies in memory so that a graph can move it on.
template <template <typename> class Kind, typename T, bool kPacked>
__global__ void random_fill(T* out, UInt64 count, UInt64 seed, UInt64 offset, const UInt64* counter,
                            const Parameters parameters) {
  constexpr int kEach = Kind<T>::kEach, kVector = 16 / sizeof(T);
  constexpr int kGroup = kEach > kVector ? kEach : kVector, kBlocks = kGroup / kEach;
  if (counter != nullptr) offset += *counter;
  const UInt64 groups = (count + kGroup - 1) / kGroup;
  const UInt64 step = static_cast<UInt64>(gridDim.x) * blockDim.x;
  for (UInt64 group = static_cast<UInt64>(blockIdx.x) * blockDim.x + threadIdx.x; group < groups;
       group += step) {
    alignas(16) T value[kGroup];
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
      Kind<T>::draw(seed, offset + group * kBlocks + i, parameters, value + i * kEach);
    }
    const UInt64 first = group * kGroup;
    if (kPacked && first + kGroup <= count) {
#pragma unroll
      for (int i = 0; i < kGroup; i += kVector) {
        Pack<T, kVector> pack;
#pragma unroll
        for (int j = 0; j < kVector; ++j) pack.value[j] = value[i + j];
        *reinterpret_cast<Pack<T, kVector>*>(out + first + i) = pack;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        if (first + i < count) out[first + i] = value[i];
      }
    }
  }
}

/// Adds to a counter, in the order of the stream.
__global__ void advance_counter(UInt64* counter, UInt64 by) { *counter += by; }

/// Takes numbers from the counter; `taken` becomes the counter from before.
__global__ void take_counter(UInt64* counter, UInt64* taken, UInt64 by) {
  const UInt64 before = *counter;
  *taken = before;
  *counter = before + by;
}
