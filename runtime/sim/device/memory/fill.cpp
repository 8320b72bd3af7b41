// Driver functions that fill memory with a pattern of 1, 2 or 4 bytes.
#include "sim/device/memory/checked_range.h"
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

/// Bytes from the first to past the last one that is filled. Throws Failure INVALID_VALUE.
std::size_t extent_of(const FillWork& fill) {
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
  const std::size_t bytes = extent_of(fill);
  if (bytes == 0) return;
  const std::lock_guard execution(sim_driver().execution);
  located(fill, bytes);
}

void perform(const FillWork& fill, AccessLog* log) {
  const std::size_t bytes = extent_of(fill);
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

template <typename Element>
struct Fill {
  const char* call;
  CUdeviceptr to;
  std::size_t pitch;
  Element value;
  std::size_t width, height;

  FillWork work() const { return {call, to, pitch, value, sizeof(Element), width, height}; }
};

/// Asynchronous with respect to the host like the other form, but on the default stream, which may
/// have to wait for others, and so forbidden where a capture would miss it.
template <typename Element>
void fill_now(const Fill<Element>& fill) {
  const StreamUse use = use_stream(nullptr);
  sim_driver().captures.forbid_synchronous(*use.context);
  submit(use, fill.work());
}

template <typename Element>
void fill_on(CUstream stream, const Fill<Element>& fill) {
  submit(use_stream(stream), fill.work());
}

}  // namespace

void calls::cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) {
  fill_now<unsigned char>({"cuMemsetD8", to, 0, value, count, 1});
}
void calls::cuMemsetD16(CUdeviceptr to, unsigned short value, std::size_t count) {
  fill_now<unsigned short>({"cuMemsetD16", to, 0, value, count, 1});
}
void calls::cuMemsetD32(CUdeviceptr to, unsigned value, std::size_t count) {
  fill_now<unsigned>({"cuMemsetD32", to, 0, value, count, 1});
}
void calls::cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                            CUstream stream) {
  fill_on<unsigned char>(stream, {"cuMemsetD8Async", to, 0, value, count, 1});
}
void calls::cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count,
                             CUstream stream) {
  fill_on<unsigned short>(stream, {"cuMemsetD16Async", to, 0, value, count, 1});
}
void calls::cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  fill_on<unsigned>(stream, {"cuMemsetD32Async", to, 0, value, count, 1});
}
void calls::cuMemsetD2D8(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                         std::size_t height) {
  fill_now<unsigned char>({"cuMemsetD2D8", to, pitch, value, width, height});
}

void calls::cuMemsetD2D16(CUdeviceptr to, std::size_t pitch, unsigned short value,
                          std::size_t width, std::size_t height) {
  fill_now<unsigned short>({"cuMemsetD2D16", to, pitch, value, width, height});
}

void calls::cuMemsetD2D32(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                          std::size_t height) {
  fill_now<unsigned>({"cuMemsetD2D32", to, pitch, value, width, height});
}

void calls::cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value,
                              std::size_t width, std::size_t height, CUstream stream) {
  fill_on<unsigned char>(stream, {"cuMemsetD2D8Async", to, pitch, value, width, height});
}

void calls::cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value,
                               std::size_t width, std::size_t height, CUstream stream) {
  fill_on<unsigned short>(stream, {"cuMemsetD2D16Async", to, pitch, value, width, height});
}

void calls::cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                               std::size_t height, CUstream stream) {
  fill_on<unsigned>(stream, {"cuMemsetD2D32Async", to, pitch, value, width, height});
}

}  // namespace kernwright::sim
