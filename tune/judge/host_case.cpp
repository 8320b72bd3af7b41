// Draws cases and checks the results of a task's functions.
#include "tune/judge/host_case.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/fill.h"
#include "tune/judge/packing.h"

namespace kernwright {
namespace {

constexpr std::uint64_t kOtherContents = 0x6a09e667f3bcc908ULL;

bool equal(const HostValue& a, const HostValue& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes &&
         a.integer == b.integer && (a.real == b.real || (a.real != a.real && b.real != b.real));
}

bool equal(const Expected& a, const Expected& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].has_value() != b[i].has_value() || (a[i] && !equal(*a[i], *b[i]))) return false;
  }
  return true;
}

void check_expected(const Task& task, const HostCase& drawn) {
  const auto at = [&](std::size_t i) {
    return format("case {} (seed {}), argument {}", drawn.number, drawn.seed, i);
  };
  if (drawn.expected.size() != drawn.inputs.size()) {
    throw InvalidArgument(
        format("the reference returns one value for each argument: case {} has {} arguments, and "
               "it returned {}",
               drawn.number, drawn.inputs.size(), drawn.expected.size()));
  }
  bool all_finite = true;
  bool any = false;
  for (const HostValue& value : drawn.inputs) all_finite = all_finite && !first_not_finite(value);
  for (const std::size_t i : task.workspace) {
    if (i >= drawn.inputs.size() || !drawn.inputs[i].is_array()) {
      throw InvalidArgument(format("{}: a workspace is an array, not {}", at(i),
                                   i < drawn.inputs.size() ? drawn.inputs[i].to_string()
                                                           : "an argument that does not exist"));
    }
    if (drawn.expected[i]) {
      throw InvalidArgument(
          format("{}: it is a workspace, so the reference returns None for it", at(i)));
    }
  }
  for (std::size_t i = 0; i < drawn.expected.size(); ++i) {
    const auto& expected = drawn.expected[i];
    if (!expected) continue;
    any = true;
    const HostValue& input = drawn.inputs[i];
    if (!input.is_array()) {
      throw InvalidArgument(
          format("{}: the reference expects {} of {}, which a kernel cannot "
                 "write",
                 at(i), expected->to_string(), input.to_string()));
    }
    if (!expected->is_array() || expected->shape != input.shape) {
      throw InvalidArgument(format("{}: the reference returned {} for an array {}", at(i),
                                   expected->to_string(), input.to_string()));
    }
    const std::string why =
        why_unreachable(*expected, input.dtype, task.tolerance_for(input.dtype));
    if (!why.empty()) throw InvalidArgument(format("{}: the reference returned {}", at(i), why));
    const auto nan = first_nan(*expected);
    if (nan && all_finite && task.allow.count("nan") == 0) {
      throw InvalidArgument(
          format("{}: the reference's value has a NaN at {}, though all inputs are finite; if that "
                 "is right, the task allows \"nan\"",
                 at(i), index_text(expected->shape, *nan)));
    }
  }
  if (!any) {
    throw InvalidArgument(format(
        "case {}: the reference expects no argument to be written, so there is nothing to judge",
        drawn.number));
  }
}

HostCase drawn_anew(const Task& task, std::uint64_t seed, int number) {
  HostCase drawn{number, seed, task.inputs(seed, number), {}, {}};
  drawn.expected = task.reference(drawn.inputs);
  check_expected(task, drawn);
  if (task.launch) drawn.shape = task.launch(drawn.inputs);
  if (drawn.shape.block.count() == 0) {
    throw InvalidArgument(format("case {}: a block needs at least one thread", number));
  }
  if (!drawn.shape.grid) {
    drawn.shape.grid = default_grid(drawn.inputs, drawn.expected, drawn.shape.block);
  }
  return drawn;
}

}  // namespace

std::uint64_t HostCase::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const HostValue& value : inputs) sum += value.is_array() ? value.bytes.size() : 0;
  return sum;
}

std::vector<std::string> HostCase::arguments() const {
  std::vector<std::string> texts;
  for (const HostValue& value : inputs) texts.push_back(value.to_string());
  return texts;
}

CaseRef draw_case(const Task& task, std::uint64_t seed, int number) {
  const auto draw = [&] {
    return std::make_shared<const HostCase>(drawn_anew(task, seed, number));
  };
  return task.drawn == nullptr ? draw() : task.drawn->get(seed, number, draw);
}

void require_same(const Task& task, const HostCase& before) {
  HostCase again{before.number, before.seed, task.inputs(before.seed, before.number), {}, {}};
  again.expected = task.reference(again.inputs);
  if (again.inputs.size() == before.inputs.size() && equal(again.expected, before.expected)) {
    bool same = true;
    for (std::size_t i = 0; i < again.inputs.size(); ++i) {
      same = same && (before.expected[i] || task.workspace.count(i) > 0 ||
                      equal(again.inputs[i], before.inputs[i]));
    }
    if (same) return;
  }
  throw InvalidArgument(
      format("the task is not deterministic: inputs({}, {}) and what the reference makes of them "
             "differ from one call to the next; draw all values from the seed",
             before.seed, before.number));
}

namespace {

/// Whether all expected values of all cases are within the tolerance of one number.
bool one_number_passes(const Task& task, const std::vector<CaseRef>& cases, double number) {
  for (const CaseRef& each : cases) {
    for (std::size_t i = 0; i < each->inputs.size(); ++i) {
      if (!each->expected[i]) continue;
      const HostValue& expected = *each->expected[i];
      const Tolerance tolerance = task.tolerance_for(each->inputs[i].dtype);
      const std::size_t size = scalar_size(expected.dtype);
      for (std::size_t at = 0; at + size <= expected.bytes.size(); at += size) {
        for (int part = 0; part < (is_complex(expected.dtype) ? 2 : 1); ++part) {
          const double wanted = element_as_double(expected.dtype, &expected.bytes[at], part);
          const double error = std::abs(wanted - (part == 0 ? number : 0));
          if (!(error <= tolerance.absolute + tolerance.relative * std::abs(wanted))) return false;
        }
      }
    }
  }
  return true;
}

bool nothing_passes(const Task& task, const std::vector<CaseRef>& cases) {
  return std::all_of(cases.begin(), cases.end(), [&](const CaseRef& each) {
    for (std::size_t i = 0; i < each->inputs.size(); ++i) {
      if (!each->expected[i]) continue;
      const Tolerance tolerance = task.tolerance_for(each->inputs[i].dtype);
      if (compare(each->inputs[i], *each->expected[i], tolerance)) return false;
    }
    return true;
  });
}

/// The mean of the first expected values, and the number of all.
std::pair<double, std::int64_t> expected_mean(const std::vector<CaseRef>& cases) {
  std::int64_t all = 0;
  double first = 0;
  for (const CaseRef& each : cases) {
    for (const auto& expected : each->expected) {
      if (!expected || expected->elements() == 0) continue;
      if (all == 0) {
        const auto count = static_cast<std::size_t>(expected->elements());
        const std::size_t size = scalar_size(expected->dtype);
        for (std::size_t i = 0; i < count; ++i) {
          first += element_as_double(expected->dtype, &expected->bytes[i * size]) /
                   static_cast<double>(count);
        }
      }
      all += expected->elements();
    }
  }
  return {first, all};
}

}  // namespace

std::vector<std::string> task_warnings(const Task& task, const std::vector<CaseRef>& cases) {
  const char* const advice =
      "smaller tolerances, or inputs of another size, tell right kernels from such ones";
  if (one_number_passes(task, cases, 0)) {
    return {
        format("the task judges little: a kernel that writes zeros is right in all {} cases; {}",
               cases.size(), advice)};
  }
  constexpr std::int64_t kFew = 16;  // of a few numbers, equal ones may be meant
  const auto [mean, count] = expected_mean(cases);
  if (count >= kFew && one_number_passes(task, cases, mean)) {
    return {
        format("the task judges little: a kernel that writes {:.6g} everywhere is right in all "
               "{} cases; {}",
               mean, cases.size(), advice)};
  }
  if (nothing_passes(task, cases)) {
    return {
        format("the task judges little: a kernel that writes nothing is right in all {} cases, "
               "since the inputs hold the expected values",
               cases.size())};
  }
  return {};
}

std::vector<bool> contents_that_count(const Task& task, const HostCase& host_case) {
  std::vector<bool> count(host_case.inputs.size(), true);
  for (std::size_t i = 0; i < host_case.inputs.size(); ++i) {
    if (!host_case.expected[i] || host_case.inputs[i].bytes.empty() || task.inout.count(i) > 0)
      continue;
    count[i] = false;
    for (const Fill fill : {Fill::random, Fill::zeros, Fill::ones, Fill::all_bits}) {
      HostValues changed = host_case.inputs;
      changed[i].bytes = filled(fill, host_case.inputs[i], {}, kOtherContents);
      try {
        count[i] = !equal(task.reference(changed), host_case.expected);
      } catch (const std::exception&) {  // such contents are none for the reference
        count[i] = true;
      }
      if (count[i]) break;
    }
  }
  return count;
}

}  // namespace kernwright
