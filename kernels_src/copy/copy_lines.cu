// Copies lines of bytes from and to any addresses, by aligned units of 16 bytes of the target.
#include <kernwright/shifted_units.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Lines of `bytes` each, `to_pitch` and `from_pitch` apart. 2^log2_lanes threads copy a part of a
/// line: `units` of the target. `count`: parts of all lines. The target and the source do not
/// overlap.
struct Lines {
  unsigned char* to;
  const unsigned char* from;
  long long to_pitch, from_pitch;
  int bytes;
  unsigned log2_lanes, parts, units, count;
};
/// One copy by each of two rows of blocks. Elements divide addresses, pitches and bytes.
template <typename Element, int kUnroll>
__global__ void __launch_bounds__(kThreads) copy_lines(const Lines one, const Lines other) {
  const bool second = blockIdx.y != 0;  // not by an address: parameters would be copied to memory
  const unsigned log2_lanes = second ? other.log2_lanes : one.log2_lanes;
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x, number = thread >> log2_lanes;
  if (number >= (second ? other.count : one.count)) return;
  const unsigned parts = second ? other.parts : one.parts, line = number / parts;
  const int part = number - line * parts, lanes = 1 << log2_lanes, lane = thread & (lanes - 1);
  unsigned char* const __restrict__ to =
      (second ? other.to : one.to) + line * (second ? other.to_pitch : one.to_pitch);
  const unsigned char* const __restrict__ from =
      (second ? other.from : one.from) + line * (second ? other.from_pitch : one.from_pitch);
  const int bytes = second ? other.bytes : one.bytes, units = second ? other.units : one.units;
  const LineUnits whole(to, from, bytes);
  const int end = min(whole.count, (part + 1) * units);
#pragma unroll 1
  for (int first = part * units + lane; first < end; first += kUnroll * lanes) {
    Unit16 low[kUnroll], high[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int i = first + u * lanes;
      if (i >= end) break;
      low[u] = whole.source[i];
      high[u] = whole.source[i + (whole.shift != 0)];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int i = first + u * lanes;
      if (i >= end) break;
      whole.target[i] = shifted_unit(low[u], high[u], whole.shift);
    }
  }
  // The first part copies the elements in front of the units, the last part the elements behind.
  const int ahead = part == 0 ? whole.begin : 0;
  const int behind = part + 1 == static_cast<int>(parts) ? bytes - whole.end() : 0;
#pragma unroll 4
  for (int i = lane * sizeof(Element); i < ahead + behind; i += lanes * sizeof(Element)) {
    const int at = i < ahead ? i : i - ahead + whole.end();
    *reinterpret_cast<Element*>(to + at) = *reinterpret_cast<const Element*>(from + at);
  }
}
