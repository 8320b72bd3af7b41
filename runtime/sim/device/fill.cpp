// Driver functions that fill memory with a pattern of 1, 2 or 4 bytes.
#include "sim/device/checked_range.h"
#include "sim/device/platform.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

/// `height` rows of `width` elements, `pitch` bytes apart.
template <typename Element>
struct Fill {
  const char* call;
  CUdeviceptr to;
  std::size_t pitch;
  Element value;
  std::size_t width, height;
};

template <typename Element>
void run(const Fill<Element>& fill) {
  require(fill.to % sizeof(Element) == 0);
  if (fill.width == 0 || fill.height == 0) return;
  require(fill.width <= ~std::size_t{0} / sizeof(Element) / 2);
  const std::size_t row = fill.width * sizeof(Element);
  if (fill.height > 1) {
    require(fill.pitch >= row && fill.pitch % sizeof(Element) == 0);
    require(fill.height - 1 <= (~std::size_t{0} - row) / fill.pitch);
  }
  const std::size_t bytes = (fill.height - 1) * (fill.height > 1 ? fill.pitch : 0) + row;
  const std::lock_guard execution(platform().execution);
  std::byte* const begin = checked_range({fill.call, fill.to, bytes, Side::device, true});
  for (std::size_t y = 0; y < fill.height; ++y) {
    std::fill_n(reinterpret_cast<Element*>(begin + y * fill.pitch), fill.width, fill.value);
  }
}

template <typename Element>
CUresult fill_now(const Fill<Element>& fill) {
  return guarded([&] {
    current_context();
    run(fill);
  });
}

template <typename Element>
CUresult fill_on(CUstream stream, const Fill<Element>& fill) {
  return guarded([&] {
    context_of(stream);
    run(fill);
  });
}

CUresult memset_d8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return fill_now<unsigned char>({"cuMemsetD8", to, 0, value, count, 1});
}
CUresult memset_d16(CUdeviceptr to, unsigned short value, std::size_t count) {
  return fill_now<unsigned short>({"cuMemsetD16", to, 0, value, count, 1});
}
CUresult memset_d32(CUdeviceptr to, unsigned value, std::size_t count) {
  return fill_now<unsigned>({"cuMemsetD32", to, 0, value, count, 1});
}
CUresult memset_d8_async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return fill_on<unsigned char>(stream, {"cuMemsetD8Async", to, 0, value, count, 1});
}
CUresult memset_d16_async(CUdeviceptr to, unsigned short value, std::size_t count,
                          CUstream stream) {
  return fill_on<unsigned short>(stream, {"cuMemsetD16Async", to, 0, value, count, 1});
}
CUresult memset_d32_async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return fill_on<unsigned>(stream, {"cuMemsetD32Async", to, 0, value, count, 1});
}
CUresult memset_d2d8(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                     std::size_t height) {
  return fill_now<unsigned char>({"cuMemsetD2D8", to, pitch, value, width, height});
}
CUresult memset_d2d16(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                      std::size_t height) {
  return fill_now<unsigned short>({"cuMemsetD2D16", to, pitch, value, width, height});
}
CUresult memset_d2d32(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                      std::size_t height) {
  return fill_now<unsigned>({"cuMemsetD2D32", to, pitch, value, width, height});
}
CUresult memset_d2d8_async(CUdeviceptr to, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream stream) {
  return fill_on<unsigned char>(stream, {"cuMemsetD2D8Async", to, pitch, value, width, height});
}
CUresult memset_d2d16_async(CUdeviceptr to, std::size_t pitch, unsigned short value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return fill_on<unsigned short>(stream, {"cuMemsetD2D16Async", to, pitch, value, width, height});
}
CUresult memset_d2d32_async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return fill_on<unsigned>(stream, {"cuMemsetD2D32Async", to, pitch, value, width, height});
}

}  // namespace

void install_fill(DriverApi& api) {
  api.cuMemsetD8 = memset_d8;
  api.cuMemsetD16 = memset_d16;
  api.cuMemsetD32 = memset_d32;
  api.cuMemsetD8Async = memset_d8_async;
  api.cuMemsetD16Async = memset_d16_async;
  api.cuMemsetD32Async = memset_d32_async;
  api.cuMemsetD2D8 = memset_d2d8;
  api.cuMemsetD2D16 = memset_d2d16;
  api.cuMemsetD2D32 = memset_d2d32;
  api.cuMemsetD2D8Async = memset_d2d8_async;
  api.cuMemsetD2D16Async = memset_d2d16_async;
  api.cuMemsetD2D32Async = memset_d2d32_async;
}

}  // namespace kernwright::sim
