// Timing and summaries for sim_kernels.cpp.
#pragma once
#include "bench/rounded.h"

#include <nlohmann/json.hpp>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// Elapsed and processor time of one call, in milliseconds.
struct Cost {
  double wall = 0, processor = 0;
};

double processor_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Cost cost_of(const std::function<void()>& work) {
  const double processor = processor_milliseconds();
  const auto begin = Clock::now();
  work();
  const double wall = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  return {wall, processor_milliseconds() - processor};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return rounded(values[values.size() / 2]);
}

nlohmann::json summary(const std::vector<Cost>& samples) {
  std::vector<double> wall, processor;
  for (const Cost& sample : samples) {
    wall.push_back(sample.wall);
    processor.push_back(sample.processor);
  }
  std::sort(wall.begin(), wall.end());
  std::sort(processor.begin(), processor.end());
  return {{"min", rounded(wall.front())},
          {"median", rounded(wall[wall.size() / 2])},
          {"processor_min", rounded(processor.front())}};
}

}  // namespace
