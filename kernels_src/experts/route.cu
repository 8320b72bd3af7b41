// Chooses the experts of each token: scores of its logits and the largest of them, a warp a token.
#include <kernwright/elements.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kWarps = 4;
constexpr int kMostChosen = 32;  // a lane keeps one
constexpr float kInfinity = 1.0f / 0.0f;

struct Routing {
  int tokens, experts, chosen;
  long long stride;   // from token to token
  const float* bias;  // added to scores for the choice alone, or none
  int groups, kept;   // of experts next to each other; those from which experts are chosen
  float scale;        // of the weights
  bool sigmoid, renormalize;
};

/// A candidate; the larger value goes first, and of equal ones the lower number.
struct Candidate {
  float value;
  int number;  // -1: none
};
__device__ __forceinline__ bool is_before(Candidate a, Candidate b) {
  if (b.number < 0) return a.number >= 0;
  if (a.number < 0) return false;
  return a.value > b.value || (a.value == b.value && a.number < b.number);
}
__device__ __forceinline__ Candidate first_of_warp(Candidate own) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    const Candidate other = {__shfl_xor_sync(~0u, own.value, mask),
                             __shfl_xor_sync(~0u, own.number, mask)};
    if (is_before(other, own)) own = other;
  }
  return own;
}

/// The scores of a lane's experts, which are lane, lane + 32, ...: NaN counts as -infinity.
template <int kEach, typename T>
__device__ __forceinline__ void load_scores(const T* logits, const Routing& of,
                                            float (&scores)[kEach]) {
  const int lane = threadIdx.x % 32;
  float most = -kInfinity;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    const float x = expert < of.experts ? to_compute(logits[expert]) : -kInfinity;
    scores[i] = x == x ? x : -kInfinity;
    most = fmaxf(most, scores[i]);
  }
  if (of.sigmoid) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) scores[i] = 1 / (1 + expf(-scores[i]));
    return;
  }
  most = warp_reduce(most, Maximum());
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    scores[i] = scores[i] == most ? 1 : expf(scores[i] - most);
    if (i * 32 + lane >= of.experts) scores[i] = 0;
    sum += scores[i];
  }
  sum = warp_reduce(sum, Sum());
#pragma unroll
  for (int i = 0; i < kEach; ++i) scores[i] /= sum;
}

/// Takes the experts of all groups but the best away. A group is as good as its best expert, or
/// where there is a bias, as its two best together (DeepSeek V2 and V3).
template <int kEach>
__device__ __forceinline__ void keep_groups(const float (&values)[kEach], const Routing& of,
                                            unsigned& taken) {
  const int lane = threadIdx.x % 32, size = of.experts / of.groups;
  float goodness = 0;  // of the group whose number is the lane's
#pragma unroll 1
  for (int group = 0; group < of.groups; ++group) {
    Candidate first = {0, -1}, second = {0, -1};
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const Candidate own = {values[i], i * 32 + lane};
      if (own.number / size != group || own.number >= of.experts) continue;
      if (is_before(own, first)) {
        second = first;
        first = own;
      } else if (is_before(own, second)) {
        second = own;
      }
    }
    const Candidate best = first_of_warp(first);
    float sum = best.value;
    if (of.bias != nullptr && size > 1) {
      sum += first_of_warp(first.number == best.number ? second : first).value;
    }
    if (lane == group) goodness = sum == sum ? sum : -kInfinity;
  }
  unsigned kept = 0;
  for (int i = 0; i < of.kept; ++i) {
    const bool free = lane < of.groups && (kept >> lane & 1) == 0;
    kept |= 1u << first_of_warp({goodness, free ? lane : -1}).number;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    if (expert < of.experts && (kept >> expert / size & 1) == 0) taken |= 1u << i;
  }
}

/// The choice for a token: weights and experts in order, one kept by each lane.
template <int kEach>
__device__ __forceinline__ void choose(const float (&scores)[kEach], const float (&values)[kEach],
                                       const Routing& of, unsigned taken, float& weight,
                                       int& expert) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int turn = 0; turn < of.chosen; ++turn) {
    Candidate own = {0, -1};
    float own_score = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const Candidate here = {values[i], (taken >> i & 1) == 0 ? i * 32 + lane : -1};
      if (here.number < of.experts && is_before(here, own)) {
        own = here;
        own_score = scores[i];
      }
    }
    const Candidate best = first_of_warp(own);
    const float score = __shfl_sync(~0u, own_score, best.number & 31);
    if (best.number >= 0 && best.number % 32 == lane) taken |= 1u << best.number / 32;
    if (lane == turn) {
      weight = score;
      expert = best.number;
    }
  }
}

/// Experts are up to 32 * kEach.
template <typename T, int kEach>
__global__ void __launch_bounds__(kWarps * 32)
    route(const T* __restrict__ logits, float* __restrict__ weights, int* __restrict__ experts,
          const Routing of) {
  wait_then_let_next_begin();
  const int lane = threadIdx.x % 32;
  const long long token = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (token >= of.tokens) return;
  float scores[kEach], values[kEach];
  load_scores(logits + token * of.stride, of, scores);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int number = i * 32 + lane;
    values[i] = of.bias != nullptr && number < of.experts ? scores[i] + of.bias[number] : scores[i];
    if (values[i] != values[i]) values[i] = -kInfinity;
  }
  unsigned taken = 0;
  if (of.kept < of.groups) keep_groups(values, of, taken);
  float weight = 0;
  int expert = 0;
  choose(scores, values, of, taken, weight, expert);
  if (of.renormalize) {
    float sum = 0;
    for (int i = 0; i < of.chosen; ++i) sum += __shfl_sync(~0u, weight, i);
    weight /= sum + 1e-20f;
  }
  if (lane < of.chosen) {
    weights[token * of.chosen + lane] = weight * of.scale;
    experts[token * of.chosen + lane] = expert;
  }
}
