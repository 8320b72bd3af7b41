// Two streams, ordered by events where they use the same pages.
#include "engine/host_pages.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log_sink.h"
#include "core/device.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kernwright::engine {

namespace {

std::int64_t slots_of(std::size_t bytes, std::int64_t slot_bytes) {
  const std::int64_t slots = static_cast<std::int64_t>(bytes) / slot_bytes;
  if (slots < 1)
    throw InvalidArgument(format("{} bytes of the host hold no page of the caches, which takes {}",
                                 bytes, slot_bytes));
  return std::min<std::int64_t>(slots, std::numeric_limits<std::int32_t>::max() - 1);
}

}  // namespace

HostPages::HostPages(std::vector<Array> caches, std::size_t bytes, const Stream& stream)
    : stream_(stream),
      side_(Stream::create(stream.device())),
      copies_(std::move(caches)),
      slots_(static_cast<std::int32_t>(slots_of(bytes, copies_.slot_bytes()))),
      computed_(stream.device(), false),
      saved_(stream.device(), false) {
  memory_ = PinnedBuffer(stream.device(), static_cast<std::size_t>(slots_) *
                                              static_cast<std::size_t>(copies_.slot_bytes()));
}

HostPages::~HostPages() {
  try {
    side_.synchronize();
    stream_.synchronize();
  } catch (const std::exception& error) {
    log_release_failure("the pages of an engine on the host", error.what());
  }
}

bool HostPages::is_idle() {
  if (saves_ && saved_.done()) saves_ = false;
  return !saves_;
}

void HostPages::save(std::span<const kernels::PageMove> moves) {
  if (moves.empty()) return;
  computed_.record(stream_);
  side_.wait(computed_);
  saves_ = true;
  copies_.copy(reinterpret_cast<CUdeviceptr>(memory_.data()), moves, true, side_);
  saved_.record(side_);
}

void HostPages::load(std::span<const kernels::PageMove> moves, bool overwrites) {
  if (saves_ && (overwrites || !moves.empty())) stream_.wait(saved_);
  copies_.copy(reinterpret_cast<CUdeviceptr>(memory_.data()), moves, false, stream_);
}

}  // namespace kernwright::engine
