// One kernel copies a page of all arrays at once.
#include "kernels_src/steps/page_copies.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/steps/page_copies.cu.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {

namespace {

constexpr std::size_t kMost = 64;  // moves of a launch
constexpr std::uint32_t kBlocks = 16, kThreads = 512;

/// Moves of the kernel.
struct Moves {
  std::int32_t pages[kMost], slots[kMost];
};

const LazyKernel& copy_kernel() {
  static const auto& family = *new Family("page_copies.cu", text::page_copies_cu);
  return family.instance(InstanceKey().add(0, 1), [] { return std::string("copy_pages"); });
}

}  // namespace

PageCopies::PageCopies(std::vector<Array> arrays) : arrays_(std::move(arrays)) {
  if (arrays_.empty()) throw InvalidArgument("there are no caches with pages to copy");
  std::vector<std::int64_t> parts;
  for (const Array& each : arrays_) {
    const std::int64_t page = each.ndim() > 1 && each.shape()[0] > 0
                                  ? static_cast<std::int64_t>(each.nbytes()) / each.shape()[0]
                                  : 0;
    if (page == 0 || page % 16 != 0 || !each.is_contiguous())
      throw InvalidArgument(
          format("pages of caches are contiguous, of a multiple of 16 bytes, not those of {}",
                 each.identify()));
    parts.insert(parts.end(), {static_cast<std::int64_t>(each.address()), page / 16, slot_units_});
    slot_units_ += page / 16;
  }
  parts_ = Array::from_host(arrays_.front().device(), parts.data(),
                            {static_cast<std::int64_t>(parts.size())}, ScalarType::int64);
}

void PageCopies::copy(CUdeviceptr host, std::span<const PageMove> moves, bool to_host,
                      const Stream& stream) const {
  while (!moves.empty()) {
    const std::size_t count = std::min(moves.size(), kMost);
    Moves given{};
    for (std::size_t i = 0; i < count; ++i) {
      given.pages[i] = moves[i].page;
      given.slots[i] = moves[i].slot;
    }
    moves = moves.subspan(count);
    const auto arrays = static_cast<std::int32_t>(arrays_.size());
    LaunchConfig config;
    config.grid = {
        std::min(kBlocks, static_cast<std::uint32_t>(count) * static_cast<std::uint32_t>(arrays))};
    config.block = {kThreads};
    config.stream = stream;
    launch(copy_kernel().on(parts_.device()), config, parts_.address(), arrays, host, slot_units_,
           given, static_cast<std::int32_t>(count), static_cast<std::int32_t>(to_host ? 1 : 0));
  }
}

}  // namespace kernwright::kernels
