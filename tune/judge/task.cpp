// Checks a task before anything is judged by it.
#include "tune/judge/task.h"

#include <cmath>

#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"

namespace kernwright {
namespace {

constexpr int kMostCases = 10000;

void check_tolerance(const char* name, const std::optional<double>& value) {
  if (value && !(*value >= 0)) {
    throw InvalidArgument(format("a task's {} must be at least 0, not {}", name, *value));
  }
}

}  // namespace

void Task::check() const {
  if (entry.empty()) throw InvalidArgument("a task needs the name of its entry");
  if (!inputs) throw InvalidArgument("a task needs inputs: a function of a seed and a number");
  if (!reference) throw InvalidArgument("a task needs a reference: a function of the inputs");
  check_tolerance("rtol", rtol);
  check_tolerance("atol", atol);
  if (cases < 1 || cases > kMostCases) {
    throw InvalidArgument(format("a task has 1 to {} cases, not {}", kMostCases, cases));
  }
  if (timed_case && (*timed_case < 0 || *timed_case >= cases)) {
    throw InvalidArgument(format("the timed case {} is not one of the {} cases (0 to {})",
                                 *timed_case, cases, cases - 1));
  }
  for (const std::string& word : allow) {
    if (word != "malloc" && word != "printf" && word != "clock" && word != "nan") {
      throw InvalidArgument(
          format("a task can allow malloc, printf, clock and nan, not {:?}", word));
    }
  }
  validate(options);
  if (!options.include_dirs.empty()) {
    throw InvalidArgument(
        "a task's options have no include_dirs: a text could read any file there; give the texts "
        "as headers");
  }
}

Tolerance Task::tolerance_for(ScalarType dtype) const {
  if (rtol || atol) return {rtol.value_or(0), atol.value_or(0)};
  return default_tolerance(dtype);
}

std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t index) noexcept {
  return splitmix_at(seed, index) >> 33U;
}

}  // namespace kernwright
