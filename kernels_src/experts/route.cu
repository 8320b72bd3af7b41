// Chooses the experts of each token: scores of its logits and the largest of them, a warp a token.
#include <kernwright/elements.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kWarps = 4;
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
__device__ __forceinline__ Candidate warp_best(Candidate held) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    const Candidate other = {__shfl_xor_sync(~0u, held.value, mask),
                             __shfl_xor_sync(~0u, held.number, mask)};
    if (is_before(other, held)) held = other;
  }
  return held;
}

/// The scores of a lane's experts, which are lane, lane + 32, ...: NaN counts as -infinity.
template <int kEach, typename T>
__device__ __forceinline__ void load_scores(const T* logits, const Routing& routing,
                                            float (&scores)[kEach]) {
  const int lane = threadIdx.x % 32;
  float most = -kInfinity;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    const float x = expert < routing.experts ? to_compute(logits[expert]) : -kInfinity;
    scores[i] = x == x ? x : -kInfinity;
    most = fmaxf(most, scores[i]);
  }
  if (routing.sigmoid) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) scores[i] = 1 / (1 + expf(-scores[i]));
    return;
  }
  most = warp_reduce(most, Maximum());
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    scores[i] = scores[i] == most ? 1 : expf(scores[i] - most);
    if (i * 32 + lane >= routing.experts) scores[i] = 0;
    sum += scores[i];
  }
  sum = warp_reduce(sum, Sum());
#pragma unroll
  for (int i = 0; i < kEach; ++i) scores[i] /= sum;
}

/// Takes the experts of all groups but the best away. A group is as good as its best expert, or
/// where there is a bias, as its two best together (DeepSeek V2 and V3).
template <int kEach>
__device__ __forceinline__ void keep_groups(const float (&values)[kEach], const Routing& routing,
                                            unsigned& taken) {
  const int lane = threadIdx.x % 32, size = routing.experts / routing.groups;
  float goodness = 0;  // of the group whose number is the lane's
#pragma unroll 1
  for (int group = 0; group < routing.groups; ++group) {
    Candidate first = {0, -1}, second = {0, -1};
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const Candidate held = {values[i], i * 32 + lane};
      if (held.number / size != group || held.number >= routing.experts) continue;
      if (is_before(held, first)) {
        second = first;
        first = held;
      } else if (is_before(held, second)) {
        second = held;
      }
    }
    const Candidate best = warp_best(first);
    float sum = best.value;
    if (routing.bias != nullptr && size > 1) {
      sum += warp_best(first.number == best.number ? second : first).value;
    }
    if (lane == group) goodness = sum == sum ? sum : -kInfinity;
  }
  unsigned kept = 0;
  for (int i = 0; i < routing.kept; ++i) {
    const bool free = lane < routing.groups && (kept >> lane & 1) == 0;
    kept |= 1u << warp_best({goodness, free ? lane : -1}).number;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    if (expert < routing.experts && (kept >> expert / size & 1) == 0) taken |= 1u << i;
  }
}

/// The choice for a token: weights and experts in order, one kept by each lane.
template <int kEach>
__device__ __forceinline__ void choose(const float (&scores)[kEach], const float (&values)[kEach],
                                       const Routing& routing, unsigned taken, float& weight,
                                       int& expert) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int turn = 0; turn < routing.chosen; ++turn) {
    Candidate held = {0, -1};
    float lane_score = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const Candidate here = {values[i], (taken >> i & 1) == 0 ? i * 32 + lane : -1};
      if (here.number < routing.experts && is_before(here, held)) {
        held = here;
        lane_score = scores[i];
      }
    }
    const Candidate best = warp_best(held);
    const float score = __shfl_sync(~0u, lane_score, best.number & 31);
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
          const Routing routing) {
  pdl_wait_then_launch();
  const int lane = threadIdx.x % 32;
  const long long token = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (token >= routing.tokens) return;
  float scores[kEach], values[kEach];
  load_scores(logits + token * routing.stride, routing, scores);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int number = i * 32 + lane;
    values[i] = routing.bias != nullptr && number < routing.experts
                    ? scores[i] + routing.bias[number]
                    : scores[i];
    if (values[i] != values[i]) values[i] = -kInfinity;
  }
  unsigned taken = 0;
  if (routing.kept < routing.groups) keep_groups(values, routing, taken);
  float weight = 0;
  int expert = 0;
  choose(scores, values, routing, taken, weight, expert);
  if (routing.renormalize) {
    float sum = 0;
    for (int i = 0; i < routing.chosen; ++i) sum += __shfl_sync(~0u, weight, i);
    weight /= sum + 1e-20f;
  }
  if (lane < routing.chosen) {
    weights[token * routing.chosen + lane] = weight * routing.scale;
    experts[token * routing.chosen + lane] = expert;
  }
}
