// Blocks of GGUF files to numbers and back.
#include <kernwright/gguf_codes.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Eight values a thread and step; `count` is a multiple of the format's block.
template <typename Format, typename T, int Align>
__global__ void __launch_bounds__(kThreads)
    dequantize_blocks(T* out, const UInt8* in, UInt64 count) {
  const UInt64 step = static_cast<UInt64>(gridDim.x) * kThreads * 8;
  for (UInt64 at = (static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x) * 8; at < count;
       at += step) {
    const UInt8* const block = in + at / Format::kValues * Format::kBytes;
    float value[8];
    Format::template decode<Align>(block, static_cast<int>(at % Format::kValues), value);
    constexpr int kWidth = 16 / sizeof(T) < 8 ? 16 / sizeof(T) : 8;
#pragma unroll
    for (int i = 0; i < 8; i += kWidth) {
      Pack<T, kWidth> pack;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) pack.value[k] = from_compute<T>(value[i + k]);
      *reinterpret_cast<Pack<T, kWidth>*>(out + at + i) = pack;
    }
  }
}

/// A warp makes a block.
template <typename Format, typename T>
__global__ void __launch_bounds__(kThreads)
    quantize_blocks(UInt8* out, const T* in, UInt64 blocks) {
  const unsigned lane = threadIdx.x % 32;
  constexpr int kWarps = kThreads / 32;
  for (UInt64 at = static_cast<UInt64>(blockIdx.x) * kWarps + threadIdx.x / 32; at < blocks;
       at += static_cast<UInt64>(gridDim.x) * kWarps) {
    UInt8* const block = out + at * Format::kBytes;
    constexpr int kEach = Format::kValues / 32;
    float value[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const float number = to_compute(in[(at * 32 + lane) * kEach + i]);
      value[i] = number == number ? number : 0.0f;
    }
    if constexpr (kEach == 1) {
      encode(Format(), block, value[0], lane);
    } else {
      encode(Format(), block, value, lane);
    }
  }
}
