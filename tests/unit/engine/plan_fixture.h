// Sequences to plan steps of, and what a plan gives them.
#pragma once

#include "engine/schedule.h"

#include <memory>
#include <vector>

namespace kernwright::testing {

/// A sequence with so many known and computed tokens that may get more.
inline std::shared_ptr<engine::Sequence> sequence_of(int length, int computed, int limit = 100) {
  auto made = std::make_shared<engine::Sequence>();
  made->source = std::make_shared<engine::Request>();
  made->length = length;
  made->computed = computed;
  made->limit = limit;
  return made;
}

/// The tokens of each part.
inline std::vector<int> counts_of(const engine::StepPlan& plan) {
  std::vector<int> counts;
  for (const engine::StepPart& part : plan.parts) counts.push_back(part.count);
  return counts;
}

}  // namespace kernwright::testing
