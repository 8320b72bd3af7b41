// Copies a launch's arguments and queues runs of its blocks.
#include "jit/sliced_launch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "jit/program.h"

namespace kernwright {
namespace {

/// Aligns arguments as strictly as any parameter is.
constexpr std::size_t kArgumentAlignment = 16;
constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();

std::string slice_refusal(const Kernel& kernel, std::string_view reason) {
  return format("{} cannot be cut into slices: {}", kernel.signature().name, reason);
}

/// That of the launch, else the one that the kernel was compiled with; zeros for none.
Dim3 cluster_extents(const Kernel& kernel, const LaunchConfig& config) {
  Device& device = kernel.device();
  if (config.cluster.x != 0 || !device.capabilities().clusters ||
      device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) {
    return config.cluster;
  }
  const ContextGuard guard(device);
  const auto extent = [&](CUfunction_attribute which) {
    int value = 0;
    device.check(device.driver().cuFuncGetAttribute(&value, which, kernel.handle()),
                 "cuFuncGetAttribute");
    return static_cast<std::uint32_t>(std::max(0, value));
  };
  return {extent(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
          extent(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
          extent(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
}

}  // namespace

Dim3 slice_grid(const LaunchConfig& config) noexcept {
  Dim3 grid = config.grid;
  grid.x = std::max(grid.x, config.most_blocks);
  return grid;
}

SlicedLaunch::SlicedLaunch(const Kernel& kernel, const LaunchConfig& config,
                           std::span<void* const> arguments, const LaunchSite& site,
                           YieldAddresses words)
    : config_(config), site_(site), words_(words) {
  kernel.check(config);
  config_.grid = slice_grid(config);
  const std::vector<Parameter>& parameters = kernel.signature().parameters;
  if (arguments.size() != parameters.size()) {
    throw ArgumentError(format("{}: {} arguments for {} parameters", kernel.signature().to_string(),
                               arguments.size(), parameters.size()));
  }
  if (config.cooperative) {
    throw NotSliceable(
        slice_refusal(kernel, "the blocks of a cooperative launch wait for each other"));
  }
  if (blocks() > std::numeric_limits<std::uint32_t>::max() - kMostBlocks) {
    throw NotSliceable(slice_refusal(kernel, format("{} blocks are too many to count", blocks())));
  }
  sliced_ = Program::sliced(kernel, bool{words});
  refuse_clusters(kernel);
  if (sliced_->asks_in_loop) config_.grid = config.grid;
  try {
    LaunchConfig one = config;
    one.grid = {cluster_, 1, 1};
    sliced_->kernel.check(one);
  } catch (const LaunchConfigError& error) {
    throw NotSliceable(slice_refusal(kernel, error.what()));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    offsets_.push_back((bytes_.size() + kArgumentAlignment - 1) / kArgumentAlignment *
                       kArgumentAlignment);
    bytes_.resize(offsets_.back() + parameters[i].size);
    std::memcpy(bytes_.data() + offsets_.back(), arguments[i], parameters[i].size);
  }
}

void SlicedLaunch::refuse_clusters(const Kernel& kernel) {
  const Dim3 cluster = cluster_extents(kernel, config_);
  cluster_ = std::max(1U, cluster.x);
  const bool stops_alone = words_ && !sliced_->asks_in_loop;
  if (cluster.y > 1 || cluster.z > 1 || (stops_alone && cluster.x > 1)) {
    throw NotSliceable(slice_refusal(
        kernel, format("its clusters of {} x {} x {} blocks {}", cluster.x, cluster.y, cluster.z,
                       stops_alone ? "would have to stop together" : "are no rows of the grid")));
  }
}

void SlicedLaunch::copy_constants() const {
  if (sliced_->constants.empty()) return;
  Device& device = sliced_->kernel.device();
  const ContextGuard guard(device);
  for (const auto& [from, to] : sliced_->constants) {
    device.check(device.driver().cuMemcpyDtoDAsync(to.address, from.address, to.size,
                                                   config_.stream.handle()),
                 "cuMemcpyDtoDAsync");
  }
}

std::uint64_t SlicedLaunch::queue(std::uint64_t max_blocks) {
  std::uint64_t count = std::min({std::max<std::uint64_t>(max_blocks, 1), left(), kMostBlocks});
  count = std::max<std::uint64_t>(count / cluster_, 1) * cluster_;
  if (left() == 0) return 0;
  if (first_ == 0) copy_constants();
  LaunchConfig config = config_;
  config.grid = {static_cast<std::uint32_t>(count), 1, 1};
  const bool yields{words_};
  const bool is_last = yields || first_ + count == blocks();
  // The words may be written by the kernel in front; one that asks in its loop waits for its end.
  const bool asks_early = yields && !sliced_->asks_in_loop;
  if (asks_early || first_ != 0) config.programmatic_dependent = false;
  if (!is_last) config.programmatic_event = config.launch_completion_event = std::nullopt;
  const Dim3& grid = config_.grid;
  const std::uint64_t row = first_ / grid.x;
  std::array<std::uint32_t, 3> first{static_cast<std::uint32_t>(first_ % grid.x),
                                     static_cast<std::uint32_t>(row % grid.y),
                                     static_cast<std::uint32_t>(row / grid.y)};
  std::array<std::uint32_t, 3> extents{grid.x, grid.y, grid.z};
  std::vector<void*> arguments{first.data(), extents.data()};
  if (yields) arguments.insert(arguments.end(), {&words_.order, &words_.next});
  for (const std::size_t offset : offsets_) arguments.push_back(bytes_.data() + offset);
  sliced_->kernel.launch(config, arguments, site_);
  if (!yields) first_ += count;
  return count;
}

}  // namespace kernwright
