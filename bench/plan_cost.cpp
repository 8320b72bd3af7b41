// Host time of an engine's step, without a device: plans, commits, and the tokens of results.
#include "bench/rounded.h"
#include "engine/batch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace engine = kernwright::engine;

namespace {

constexpr std::int32_t kRows = 256, kPrompt = 1024, kPage = 16, kLong = 100'000;
constexpr int kSteps = 240;

using Text = std::vector<std::int32_t>;
using Clock = std::chrono::steady_clock;

class NoRows final : public engine::RowStates {
 public:
  void set_row(std::int32_t, const engine::RowStart&) override {}
  void set_pages(std::int32_t, std::size_t, std::span<const std::int32_t>) override {}
  void set_mask(std::int32_t, std::span<const std::uint32_t>, const engine::RowDrafts&) override {}
  void set_followed(std::int32_t, std::int32_t) override {}
};

/// A batch whose steps give token 1 to each row, read one step late.
class Steps {
 public:
  explicit Steps(std::int32_t pages)
      : batch_({.max_rows = kRows + 1,
                .capacity = kLong + 4096,
                .pages = {.total = pages, .page_size = kPage, .prefix_cache = true},
                .schedule = {.max_tokens = 8192},
                .vocabulary = 1000},
               rows_) {}

  void submit(Text prompt, std::int32_t tokens) {
    engine::Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = tokens;
    batch_.submit(++requests_, std::move(request));
  }

  void step() {
    const engine::StepPlan plan = batch_.plan();
    if (!plan.parts.empty()) {
      batch_.commit(plan, active_, counts_);
      unread_.push_back(plan.parts);
    }
    if (unread_.size() > (plan.parts.empty() ? 0U : 1U)) {
      const Text results(unread_.front().size(), 1);
      batch_.receive(unread_.front(), results, 1);
      unread_.pop_front();
    }
    batch_.events().clear();
  }

  void drain() {
    while (batch_.has_sequences()) step();
    unread_.clear();
  }

  const engine::Batch& batch() const { return batch_; }

 private:
  NoRows rows_;
  engine::Batch batch_;
  Text active_, counts_;
  std::deque<std::vector<engine::StepPart>> unread_;
  std::uint64_t requests_ = 0;
};

Text text_of(std::int32_t number, std::int32_t length) {
  Text text;
  for (std::int32_t i = 0; i < length; ++i)
    text.push_back((number * 7919 + i * 31 + i / 997) % 1000);
  return text;
}

nlohmann::ordered_json microseconds_of(Steps& steps) {
  std::vector<double> samples;
  for (int i = 0; i < kSteps; ++i) {
    const auto begin = Clock::now();
    steps.step();
    samples.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::ranges::sort(samples);
  const auto at = [&](double part) {
    return rounded(samples[static_cast<std::size_t>(part * (kSteps - 1))]);
  };
  return {{"median", at(0.5)}, {"99 %", at(0.99)}, {"max", at(1)}};
}

/// 256 rows in generation. All other pages have texts of before, so that each page taken is given
/// up by one of them. A prompt of `waiting` tokens, which the cache has for the most part where it
/// is `cached`, waits for pages behind the rows.
nlohmann::ordered_json measured(std::int32_t waiting, bool cached) {
  constexpr std::int32_t kLeast = kRows * ((kPrompt + kSteps + 100) / kPage + 1);
  Steps steps(kLeast + 1024);
  for (std::int32_t i = 0; i < 6; ++i) steps.submit(text_of(2000 + i, 60'000), 2);
  steps.drain();
  if (cached) steps.submit(text_of(1, kLong), 2);
  steps.drain();
  for (std::int32_t i = 0; i < kRows; ++i) steps.submit(text_of(2 + i, kPrompt), 4000);
  for (int i = 0; i < 60; ++i) steps.step();
  if (waiting > 0) steps.submit(text_of(1, waiting), 4000);
  const auto begin = Clock::now();
  steps.step();  // the first plan searches
  const double first = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  nlohmann::ordered_json found = microseconds_of(steps);
  const engine::BatchStats stats = steps.batch().stats();
  found["first"] = rounded(first);
  found["rows"] = stats.rows;
  found["waiting"] = stats.waiting;
  found["preemptions"] = stats.preemptions;
  return found;
}

}  // namespace

int main() {
  const nlohmann::ordered_json found = {
      {"256 rows", measured(0, false)},
      {"256 rows, 100k tokens wait, unknown", measured(kLong, false)},
      {"256 rows, 100k tokens wait, cached", measured(kLong, true)},
  };
  std::puts(found.dump(2).c_str());
  return 0;
}
