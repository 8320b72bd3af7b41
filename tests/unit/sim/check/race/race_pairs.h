// The racing steps of a random program, and whether a finding names two of them.
#pragma once

#include "sim/checks.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

namespace kernwright::sim::testing {

/// The first seed of random programs: 0, or the number in KERNWRIGHT_TEST_SEED.
inline unsigned first_seed() {
  const char* const text = std::getenv("KERNWRIGHT_TEST_SEED");
  return text == nullptr ? 0 : static_cast<unsigned>(std::stoul(text));
}

using Pairs = std::set<std::pair<int, int>>;  ///< of steps, the lower one first

inline std::string shown(const Pairs& pairs) {
  std::string text;
  for (const auto& [a, b] : pairs) text += std::to_string(a) + "-" + std::to_string(b) + " ";
  return text;
}

/// Whether the two steps named by the finding race. For one of several readers: whether the writer
/// and some reader do, a step with `reads`. `first_line` is the PTX line of step 0.
template <typename F>
bool is_right(const Pairs& racing, const Finding& finding, int first_line, F reads) {
  const int here = finding.fault.ptx_line - first_line;
  const int there = finding.other->ptx_line - first_line;
  if (racing.contains(std::minmax(here, there))) return true;
  if (finding.other->thread_known) return false;
  return std::any_of(racing.begin(), racing.end(), [&](const std::pair<int, int>& pair) {
    if (pair.first != here && pair.second != here) return false;
    return reads(static_cast<std::size_t>(pair.first == here ? pair.second : pair.first));
  });
}

}  // namespace kernwright::sim::testing
