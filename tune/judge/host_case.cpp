// Draws cases and checks the results of a task's functions.
#include "tune/judge/host_case.h"

#include <exception>

#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/packing.h"
#include "worker/device/random_bytes.h"

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
    const std::string why = why_unreachable(*expected, input.dtype, task.tolerance_of(input.dtype));
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
      same = same && (before.expected[i] || equal(again.inputs[i], before.inputs[i]));
    }
    if (same) return;
  }
  throw InvalidArgument(
      format("the task is not deterministic: inputs({}, {}) and what the reference makes of them "
             "differ from one call to the next; draw all values from the seed",
             before.seed, before.number));
}

std::vector<bool> contents_that_count(const Task& task, const HostCase& of) {
  std::vector<bool> count(of.inputs.size(), true);
  for (std::size_t i = 0; i < of.inputs.size(); ++i) {
    if (!of.expected[i] || of.inputs[i].bytes.empty()) continue;
    HostValues changed = of.inputs;
    random_bytes(kOtherContents, 0, changed[i].bytes);
    try {
      count[i] = !equal(task.reference(changed), of.expected);
    } catch (const std::exception&) {  // such contents are none for the reference
    }
  }
  return count;
}

}  // namespace kernwright
