// The model of slices: equal blocks, in rounds over the multiprocessors.
#include "jit/slice/slice_plan.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"

namespace kernwright {
namespace {

/// A slice takes longer than its share of the blocks: its last round is not full.
constexpr double kMargin = 1.3;

}  // namespace

std::uint64_t slice_blocks(const SliceRequest& request) {
  const bool is_valid = request.launch_us > 0 && request.latency_us > 0 &&
                        std::isfinite(request.launch_us) && std::isfinite(request.latency_us) &&
                        request.blocks > 0 && request.multiprocessors > 0 &&
                        request.resident_blocks > 0;
  if (!is_valid) {
    throw InvalidArgument(format(
        "slices of {} blocks ({} on each of {} multiprocessors at once) in {} us, with at most {} "
        "us each: all must be above 0",
        request.blocks, request.resident_blocks, request.multiprocessors, request.launch_us,
        request.latency_us));
  }
  const auto multiprocessors = static_cast<std::uint64_t>(request.multiprocessors);
  const double slices = std::ceil(kMargin * request.launch_us / request.latency_us);
  if (slices <= 1 || request.blocks <= multiprocessors) return request.blocks;
  const std::uint64_t full = multiprocessors * static_cast<std::uint64_t>(request.resident_blocks);
  const double share = std::ceil(static_cast<double>(request.blocks) / slices);
  const auto wanted = static_cast<std::uint64_t>(share);
  // Whole rounds of all places where the share has one, else of one block on each multiprocessor.
  const std::uint64_t round = wanted >= full ? full : multiprocessors;
  const std::uint64_t rounded = std::max(wanted / round, std::uint64_t{1}) * round;
  return std::min(rounded, request.blocks);
}

std::uint64_t even_round(std::uint64_t blocks, std::uint64_t most, std::uint64_t unit) noexcept {
  const std::uint64_t even = ceil_div(blocks, ceil_div(blocks, most));
  return std::min(round_up(even, unit), most);
}

}  // namespace kernwright
