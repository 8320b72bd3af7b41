// Driver functions for filling memory with a pattern of 1, 2 or 4 bytes.
#include "sim/device/memory/checked_range.h"
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

/// Bytes from the first filled one to past the last. Throws Failure INVALID_VALUE.
std::size_t fill_extent(const FillWork& fill) {
  require(fill.to % fill.element == 0);
  if (fill.width == 0 || fill.height == 0) return 0;
  require(fill.width <= ~std::size_t{0} / fill.element / 2);
  const std::size_t row = fill.width * fill.element;
  if (fill.height == 1) return row;
  require(fill.pitch >= row && fill.pitch % fill.element == 0);
  require(fill.height - 1 <= (~std::size_t{0} - row) / fill.pitch);
  return (fill.height - 1) * fill.pitch + row;
}

std::byte* located(const FillWork& fill, std::size_t bytes) {
  return checked_range({fill.call, fill.to, bytes, Side::device, true});
}

template <typename Element>
void fill_rows(std::byte* begin, const FillWork& fill) {
  for (std::size_t y = 0; y < fill.height; ++y) {
    std::fill_n(reinterpret_cast<Element*>(begin + y * fill.pitch), fill.width,
                static_cast<Element>(fill.value));
  }
}

}  // namespace

void check(const FillWork& fill) {
  const std::size_t bytes = fill_extent(fill);
  if (bytes == 0) return;
  const std::lock_guard execution(sim_driver().execution);
  located(fill, bytes);
}

void perform(const FillWork& fill, AccessLog* log) {
  const std::size_t bytes = fill_extent(fill);
  if (bytes == 0) return;
  const std::lock_guard execution(sim_driver().execution);
  std::byte* const begin = located(fill, bytes);
  for (std::size_t y = 0; log != nullptr && y < fill.height; ++y) {
    log->note(fill.to + y * fill.pitch, fill.width * fill.element, AccessKind::write);
  }
  for (std::size_t y = 0; sim_driver().checks.init() && y < fill.height; ++y) {
    sim_driver().checks.shadow.unpoison(fill.to + y * fill.pitch, fill.width * fill.element);
  }
  if (fill.element == 1) fill_rows<unsigned char>(begin, fill);
  if (fill.element == 2) fill_rows<unsigned short>(begin, fill);
  if (fill.element == 4) fill_rows<unsigned>(begin, fill);
}

namespace {

/// Asynchronous with respect to the host like the other form, but on the default stream. This
/// stream may have to wait for others, so the call is forbidden if a capture would miss it.
void fill_now(FillWork&& fill) {
  const StreamUse use = use_stream(nullptr);
  sim_driver().captures.forbid_synchronous(*use.context);
  submit(use, std::move(fill));
}

void fill_on(CUstream stream, FillWork&& fill) { submit(use_stream(stream), std::move(fill)); }

}  // namespace

#define KW_FILLS(bits, Element)                                                                    \
  void calls::cuMemsetD##bits(CUdeviceptr to, Element value, std::size_t count) {                  \
    fill_now({"cuMemsetD" #bits, to, 0, value, sizeof value, count, 1});                           \
  }                                                                                                \
  void calls::cuMemsetD##bits##Async(CUdeviceptr to, Element value, std::size_t count,             \
                                     CUstream stream) {                                            \
    fill_on(stream, {"cuMemsetD" #bits "Async", to, 0, value, sizeof value, count, 1});            \
  }                                                                                                \
  void calls::cuMemsetD2D##bits(CUdeviceptr to, std::size_t pitch, Element value,                  \
                                std::size_t width, std::size_t height) {                           \
    fill_now({"cuMemsetD2D" #bits, to, pitch, value, sizeof value, width, height});                \
  }                                                                                                \
  void calls::cuMemsetD2D##bits##Async(CUdeviceptr to, std::size_t pitch, Element value,           \
                                       std::size_t width, std::size_t height, CUstream stream) {   \
    fill_on(stream, {"cuMemsetD2D" #bits "Async", to, pitch, value, sizeof value, width, height}); \
  }
KW_FILLS(8, unsigned char)
KW_FILLS(16, unsigned short)
KW_FILLS(32, unsigned)
#undef KW_FILLS

}  // namespace kernwright::sim
