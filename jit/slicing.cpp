// The hook that queues slices in the place of a launch.
#include "jit/slicing.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "base/math.h"
#include "core/kernel.h"
#include "jit/slice/slice_plan.h"
#include "jit/sliced_launch.h"

namespace kernwright {
namespace {

class Slices final : public LaunchPieces {
 public:
  Slices(SlicedLaunch launch, std::uint64_t blocks) : launch_(std::move(launch)), blocks_(blocks) {}
  std::size_t left() const noexcept override { return ceil_div(launch_.left(), blocks_); }
  WorkKey next() const noexcept override {
    return {launch_.twin().kernel.handle(), std::min(blocks_, launch_.left())};
  }
  double amount() const noexcept override {
    const std::uint64_t one = std::max(next().second, std::uint64_t{1});
    return static_cast<double>(launch_.left()) / static_cast<double>(one);
  }
  void queue() override { launch_.queue(blocks_); }

 private:
  SlicedLaunch launch_;
  const std::uint64_t blocks_;
};

/// All of a launch, until it is told to stop.
class YieldingPiece final : public LaunchPieces {
 public:
  explicit YieldingPiece(SlicedLaunch launch) : launch_(std::move(launch)) {}
  std::size_t left() const noexcept override { return 1; }
  WorkKey next() const noexcept override {
    return {launch_.twin().kernel.handle(), launch_.blocks()};
  }
  void queue() override { launch_.queue(launch_.blocks()); }
  std::uint64_t yields_until() const noexcept override { return launch_.end(); }

 private:
  SlicedLaunch launch_;
};

/// The blocks of a cluster, or two of a kernel without one.
std::uint64_t cluster_blocks(const LaunchConfig& config) {
  return std::max<std::uint64_t>(config.cluster.count(), 2);
}

/// A grid that leaves multiprocessors free, for blocks with many tiles each.
LaunchConfig smaller_launch(const LaunchConfig& config, const PieceRequest& request) {
  LaunchConfig smaller = config;
  const auto used = static_cast<std::uint64_t>(request.used_multiprocessors());
  const auto all = static_cast<std::uint64_t>(request.multiprocessors);
  if (used == all || config.grid.count() != config.grid.x || config.grid.x < all) return smaller;
  const std::uint64_t unit = cluster_blocks(config);
  const std::uint64_t most = config.grid.x * used / all / unit * unit;
  if (most == 0) return smaller;  // one cluster is larger
  smaller.grid.x = static_cast<std::uint32_t>(even_round(config.most_blocks, most, unit));
  return smaller;
}

/// A launch whose blocks ask in front of each tile, with the words of `request`; null for others.
std::unique_ptr<LaunchPieces> yielding_launch(const Kernel& kernel, const LaunchConfig& config,
                                              std::span<void* const> arguments,
                                              const LaunchSite& site, const PieceRequest& request,
                                              void (*begin)(const SlicedKernel&)) {
  if (!request.words) return nullptr;
  try {
    SlicedLaunch launch(kernel, smaller_launch(config, request), arguments, site, request.words);
    if (begin != nullptr) begin(launch.twin());
    return std::make_unique<YieldingPiece>(std::move(launch));
  } catch (const NotSliceable&) {
    return nullptr;
  }
}

std::uint64_t piece_blocks(const Kernel& kernel, const LaunchConfig& config,
                           const PieceRequest& request) {
  const std::uint64_t blocks = slice_grid(config).count();
  if (request.launch_us == 0) return std::min(blocks, request.most_blocks);
  const int resident =
      std::max(1, kernel.occupancy(static_cast<int>(config.block.count()), config.shared_bytes));
  // Blocks that are all on the device at once may wait for each other.
  const auto places =
      static_cast<std::uint64_t>(request.multiprocessors) * static_cast<std::uint64_t>(resident);
  if (config.most_blocks == 0 && blocks <= places) return blocks;
  const auto used = static_cast<std::uint64_t>(request.used_multiprocessors());
  const std::uint64_t piece = slice_blocks({.blocks = blocks,
                                            .launch_us = request.launch_us,
                                            .latency_us = request.latency_us,
                                            .multiprocessors = static_cast<int>(used),
                                            .resident_blocks = resident});
  const bool is_round = piece == used || piece == used * static_cast<std::uint64_t>(resident);
  if (request.spare == 0 || !is_round) return piece;
  return even_round(blocks, piece, cluster_blocks(config));
}

}  // namespace

Slicing::Slicing(const Options& options) : options_(options) {
  if (options.max_blocks == 0) throw InvalidArgument("a slice has at least 1 block, got 0");
}

void Slicing::launch(const Kernel& kernel, const LaunchConfig& config,
                     std::span<void* const> arguments, const LaunchSite& site) {
  ++counts_.launches;
  const bool yields = options_.words != 0;
  YieldAddresses words;
  if (yields) words = {options_.words, options_.words + sizeof(std::uint32_t)};
  std::optional<SlicedLaunch> slices;
  if (yields || slice_grid(config).count() > options_.max_blocks) {
    try {
      slices.emplace(kernel, config, arguments, site, words);
    } catch (const NotSliceable& error) {
      if (options_.strict) throw;
      ++counts_.refused;
      counts_.reason = error.what();
    }
  }
  if (!slices) {
    kernel.launch(config, arguments, site);
    ++counts_.slices;
    return;
  }
  begin(slices->twin());
  do {
    slices->queue(options_.max_blocks);
    ++counts_.slices;
  } while (!yields && slices->left() > 0);
}

std::unique_ptr<LaunchPieces> cut_launch(const Kernel& kernel, const LaunchConfig& config,
                                         std::span<void* const> arguments, const LaunchSite& site,
                                         const PieceRequest& request,
                                         void (*begin)(const SlicedKernel&)) {
  if (auto yielding = yielding_launch(kernel, config, arguments, site, request, begin)) {
    return yielding;
  }
  const std::uint64_t blocks = piece_blocks(kernel, config, request);
  if (blocks >= slice_grid(config).count()) return nullptr;
  try {
    SlicedLaunch slices(kernel, config, arguments, site);
    if (begin != nullptr) begin(slices.twin());
    return std::make_unique<Slices>(std::move(slices), blocks);
  } catch (const NotSliceable&) {
    return nullptr;
  }
}

}  // namespace kernwright
