// Backfitting of an additive model, with effects shrunk to zero where little was seen.
#include "tune/session/compile_estimate.h"

#include <algorithm>
#include <cmath>

namespace kernwright {
namespace {

constexpr double kShrinkage = 1.0;  // as if one sample without an effect had been seen
constexpr int kSweeps = 4;
// Compiles before deadlines follow the model. They are fewer than a session has in flight at once,
// so a stuck one among the first has a deadline, too.
constexpr std::size_t kEnough = 4;
constexpr double kShortest = 1e-4;  // seconds

}  // namespace

CompileEstimate::CompileEstimate(const Space& space) {
  for (const TuningParameter& parameter : space.parameters())
    effects_.emplace_back(parameter.values.size(), 0.0);
}

double CompileEstimate::sum(const Choices& choices) const {
  double total = mean_;
  for (std::size_t p = 0; p < effects_.size(); ++p) total += effects_[p][choices[p]];
  return total;
}

void CompileEstimate::learn(const Choices& choices, double seconds) {
  samples_.push_back({choices, std::log(std::max(seconds, kShortest))});
  if (samples_.size() < 64 || samples_.size() * 10 >= fitted_ * 11) fit();
}

void CompileEstimate::fit() {
  fitted_ = samples_.size();
  mean_ = 0;
  for (const Sample& sample : samples_) mean_ += sample.log_seconds;
  mean_ /= static_cast<double>(fitted_);
  for (auto& effect : effects_) std::fill(effect.begin(), effect.end(), 0.0);
  std::vector<double> rest(fitted_);  // the part not explained by the model yet
  for (std::size_t i = 0; i < fitted_; ++i) rest[i] = samples_[i].log_seconds - mean_;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t p = 0; p < effects_.size(); ++p) {
      std::vector<double>& effect = effects_[p];
      std::vector<double> sums(effect.size(), 0.0), counts(effect.size(), kShrinkage);
      for (std::size_t i = 0; i < fitted_; ++i) {
        const std::uint32_t choice = samples_[i].choices[p];
        rest[i] += effect[choice];
        sums[choice] += rest[i];
        counts[choice] += 1;
      }
      for (std::size_t c = 0; c < effect.size(); ++c) effect[c] = sums[c] / counts[c];
      for (std::size_t i = 0; i < fitted_; ++i) rest[i] -= effect[samples_[i].choices[p]];
    }
  }
  residual_ = std::max(0.0, *std::max_element(rest.begin(), rest.end()));
}

std::optional<double> CompileEstimate::predict(const Choices& choices) const {
  if (samples_.empty()) return std::nullopt;
  return std::exp(sum(choices));
}

double CompileEstimate::typical() const { return samples_.empty() ? 0 : std::exp(mean_); }

double CompileEstimate::deadline(const Choices& choices, const CompileDeadlines& deadlines) const {
  if (samples_.size() < kEnough) return std::max(deadlines.first_s, deadlines.floor_s);
  const double expected = std::exp(sum(choices) + residual_);
  return std::max(deadlines.floor_s, deadlines.factor * expected);
}

}  // namespace kernwright
