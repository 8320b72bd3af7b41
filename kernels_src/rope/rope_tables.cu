// Frequencies of rotary embeddings and their tables, slopes and biases of ALiBi. All is computed in
// double and rounded once.
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr double kTurn = 6.283185307179586476925;

/// RopeRule of rope.h, as the device needs it.
struct FrequencyRule {
  double base;         ///< after the changes of NTK
  double factor;       ///< 1: frequencies stay
  double low, high;    ///< yarn: pairs between which the ramp is; llama3: wavelengths per turn
  double original;     ///< positions before scaling
  double attention;    ///< multiplies cosines and sines
  const double* divisors;  ///< of each frequency, or none
  int kind;            ///< 0: divided by factor; 1: yarn; 2: llama3
};

__device__ double frequency(const FrequencyRule& rule, int pair, int half) {
  const double plain = pow(rule.base, -static_cast<double>(pair) / half);
  if (rule.divisors != nullptr) return plain / rule.divisors[pair];
  const double scaled = plain / rule.factor;
  if (rule.kind == 1) {
    double ramp = (pair - rule.low) / (rule.high - rule.low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return scaled * ramp + plain * (1 - ramp);
  }
  if (rule.kind == 2) {
    const double rotations = rule.original * plain / kTurn;
    if (rotations > rule.high) return plain;
    if (rotations < rule.low) return scaled;
    const double smooth = (rotations - rule.low) / (rule.high - rule.low);
    return (1 - smooth) * scaled + smooth * plain;
  }
  return scaled;
}

__global__ void __launch_bounds__(kThreads)
    rope_frequencies(float* __restrict__ out, int half, const FrequencyRule rule) {
  const int pair = blockIdx.x * kThreads + threadIdx.x;
  if (pair < half) out[pair] = static_cast<float>(frequency(rule, pair, half));
}

/// Row r is position first + r.
__global__ void __launch_bounds__(kThreads)
    rope_tables(float* __restrict__ cosines, float* __restrict__ sines, long long rows, int half,
                long long first, const FrequencyRule rule) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * half) return;
  const long long row = i / half;
  const int pair = static_cast<int>(i - row * half);
  double sine, cosine;
  sincos(static_cast<double>(first + row) * frequency(rule, pair, half), &sine, &cosine);
  cosines[i] = static_cast<float>(cosine * rule.attention);
  sines[i] = static_cast<float>(sine * rule.attention);
}

/// 2^(-8 (h + 1) / n) for a power of two n; beyond the greatest power m below n, every second slope
/// of 2 m heads (O. Press et al., "Train short, test long", 2022).
__device__ double alibi_slope(int head, int heads) {
  int power = 1;
  while (power * 2 <= heads) power *= 2;
  const double exponent = head < power ? -8.0 * (head + 1) / power
                                       : -8.0 * (2 * (head - power) + 1) / (2.0 * power);
  return exp2(exponent);
}

__global__ void __launch_bounds__(kThreads) alibi_slopes(float* __restrict__ out, int heads) {
  const int head = blockIdx.x * kThreads + threadIdx.x;
  if (head < heads) out[head] = static_cast<float>(alibi_slope(head, heads));
}

/// -slope * distance; the last query is at the last key.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    alibi_bias(T* __restrict__ out, int heads, long long queries, long long keys) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= heads * queries * keys) return;
  const long long row = i / keys, key = i - row * keys;
  const int head = static_cast<int>(row / queries);
  const long long query = row - head * queries + keys - queries;
  const long long distance = query > key ? query - key : key - query;
  const double bias = -alibi_slope(head, heads) * static_cast<double>(distance);
  out[i] = from_compute<T>(static_cast<Compute<T>>(bias));
}
