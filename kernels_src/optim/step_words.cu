// The few numbers of a step that stay on the device: factors, counts, rates, the loss scale.
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kGroups = 100;

enum DecayShape { kNoSchedule, kConstant, kLinear, kCosine, kRoot };

/// A learning rate over the steps 1, 2, ...: up to `peak` in `warmup` steps, level until `hold`,
/// then down to `floor` at `total`.
struct Schedule {
  double peak, floor, warmup, hold, total, shape;
};

struct GroupWords {
  double rate, others[6];
  Schedule schedule;
};

__device__ double rate_at(const Schedule& s, double step) {
  if (step < s.warmup) return s.peak * (step / s.warmup);
  if (s.shape == kConstant || step <= s.hold) return s.peak;
  if (step >= s.total) return s.floor;
  const double part = (step - s.hold) / (s.total - s.hold);
  double left = 1 - part;
  if (s.shape == kCosine) left = 0.5 * (1 + cos(3.14159265358979323846 * part));
  if (s.shape == kRoot) left = 1 - sqrt(part);
  return s.floor + (s.peak - s.floor) * left;
}

/// What the gradients are multiplied with before a step. Null pointers stand for 1.
struct FactorSettings {
  const float* norm;        // of the gradients as they are, or null
  const float* loss_scale;  // factor of the loss, and so of the gradients
  const float* given;       // the caller's own factor
  const Int64* tokens;      // the gradients are sums over so many tokens
  double limit;             // the longest norm after all other factors
};

/// `skip`: 1 where the norm of gradients with a loss scale is not finite, or there are no tokens.
__global__ void gradient_factor(const FactorSettings s, float* factor, float* norm, int* skip) {
  double all = s.given != nullptr ? static_cast<double>(*s.given) : 1.0;
  bool skipped = false;
  if (s.loss_scale != nullptr) all /= static_cast<double>(*s.loss_scale);
  if (s.tokens != nullptr) {
    skipped = *s.tokens == 0;
    all = skipped ? 0.0 : all / static_cast<double>(*s.tokens);
  }
  double length = 0;
  if (s.norm != nullptr) {
    length = static_cast<double>(*s.norm) * abs(all);
    if (s.loss_scale != nullptr && !isfinite(length)) skipped = true;
    const double clipped = s.limit / (length + 1e-6);
    if (clipped < 1) all *= clipped;
  }
  *norm = static_cast<float>(length);
  *factor = static_cast<float>(all);
  *skip = skipped ? 1 : 0;
}

struct Advance {
  Int64* steps;
  const int* skip;    // or null
  Int64* tokens;      // null, or set to 0
  float* loss_scale;  // or null
  Int64* good;        // steps with finite gradients since the loss scale changed
  double growth, backoff;
  Int64 interval;
  int count;
  GroupWords* groups[kGroups];
};

/// Begins a step: the count and the rates for it, and the loss scale for the step behind it.
__global__ void advance_step(const Advance a) {
  const bool skipped = a.skip != nullptr && *a.skip != 0;
  const Int64 step = *a.steps + (skipped ? 0 : 1);
  *a.steps = step;
  for (int i = 0; i < a.count; ++i) {
    const Schedule schedule = a.groups[i]->schedule;
    if (schedule.shape == kNoSchedule) continue;
    a.groups[i]->rate = rate_at(schedule, static_cast<double>(step));
  }
  const bool empty = a.tokens != nullptr && *a.tokens == 0;
  if (a.tokens != nullptr) *a.tokens = 0;
  if (a.loss_scale == nullptr || empty) return;
  const double scale = static_cast<double>(*a.loss_scale);
  const Int64 good = skipped ? 0 : *a.good + 1;
  double changed = scale;
  if (skipped) {
    changed = fmax(scale * a.backoff, 7.8886090522101181e-31);  // 2^-100
  } else if (good >= a.interval && isfinite(static_cast<float>(scale * a.growth))) {
    changed = scale * a.growth;
  }
  *a.loss_scale = static_cast<float>(changed);
  *a.good = good >= a.interval ? 0 : good;
}

/// Adds `number`, or what `word` points to.
__global__ void add_count(Int64* count, const Int64* word, Int64 number) {
  *count += word != nullptr ? *word : number;
}
