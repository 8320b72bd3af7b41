// One case of a task with its inputs and expected values.
#pragma once

#include "tune/judge/task.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

struct HostCase {
  int number = 0;
  std::uint64_t seed = 0;
  HostValues inputs;
  Expected expected;
  LaunchShape shape;  ///< with its grid

  /// Bytes of all arrays.
  std::uint64_t bytes() const noexcept;
  std::vector<std::string> arguments() const;
};

/// Calls the task's functions, unless task.drawn has the case. Throws their errors. Throws
/// InvalidArgument, naming the case and the argument, for a wrong count of values, a wrong shape, a
/// value that no kernel can write there (why_unreachable()), a NaN not allowed by the task, a bad
/// grid or block.
CaseRef draw_case(const Task& task, std::uint64_t seed, int number);

/// Throws InvalidArgument if the same seed and number gave other inputs before. Arrays may differ
/// if no expected value depends on them (they may be uninitialised).
void require_same(const Task& task, const HostCase& before);

/// What the author of the task should know of it: that kernels which do nothing, write zeros or one
/// number everywhere are right in all these cases. Empty: nothing.
std::vector<std::string> task_warnings(const Task& task, const std::vector<CaseRef>& cases);

/// For each argument: whether expected values depend on the contents of the array before the
/// launch. Found by calls of the reference with other contents; a reference that then fails counts
/// as dependent.
std::vector<bool> contents_that_count(const Task& task, const HostCase& host_case);

}  // namespace kernwright
