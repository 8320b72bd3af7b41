// Copies lines of bytes from and to any addresses, by aligned units of 16 bytes of the target.
#include <kernwright/shifted_units.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Lines of `bytes` each, `to_pitch` and `from_pitch` apart. `units`: at least as many as one of
/// them touches in the target; `count`: of all lines. The target does not overlap the source.
struct Lines {
  unsigned char* to;
  const unsigned char* from;
  long long to_pitch, from_pitch;
  int bytes;
  unsigned units, count;
};
/// One copy by each of two rows of blocks. Elements divide addresses, pitches and bytes.
template <typename Element, int kUnroll>
__global__ void __launch_bounds__(kThreads) copy_lines(const Lines one, const Lines other) {
  const bool second = blockIdx.y != 0;  // not by an address: parameters would be copied to memory
  unsigned char* const __restrict__ to = second ? other.to : one.to;
  const unsigned char* const __restrict__ from = second ? other.from : one.from;
  const long long to_pitch = second ? other.to_pitch : one.to_pitch;
  const long long from_pitch = second ? other.from_pitch : one.from_pitch;
  const int bytes = second ? other.bytes : one.bytes;
  const unsigned units = second ? other.units : one.units;
  const unsigned count = second ? other.count : one.count;
  const unsigned first = blockIdx.x * (kThreads * kUnroll) + threadIdx.x;
  Unit16 low[kUnroll], high[kUnroll];
  LineBytes line[kUnroll];
  unsigned char* target[kUnroll];
  int at[kUnroll];
  bool whole[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const unsigned i = first + u * kThreads, number = i / units;
    line[u] = {from + number * from_pitch, bytes};
    target[u] = to + number * to_pitch;
    const int ahead = static_cast<int>(reinterpret_cast<unsigned long long>(target[u]) & 15);
    at[u] = i < count ? static_cast<int>(i - number * units) * 16 - ahead : bytes;
    whole[u] = at[u] >= 0 && at[u] + 16 <= bytes && line[u].has_units(at[u]);
    if (whole[u]) {
      low[u] = line[u].low(at[u]);
      high[u] = line[u].high(at[u]);
    }
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (whole[u]) {
      *reinterpret_cast<Unit16*>(target[u] + at[u]) =
          shifted_unit(low[u], high[u], line[u].shift_at(at[u]));
      continue;
    }
    for (int i = max(at[u], 0); i < min(at[u] + 16, bytes); i += sizeof(Element)) {
      *reinterpret_cast<Element*>(target[u] + i) =
          *reinterpret_cast<const Element*>(line[u].data + i);
    }
  }
}
