// Takes eight bytes a thread where rows are whole bytes and aligned.
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/formats/checks.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/formats/nibbles.cu.h"

namespace kernwright::kernels {
namespace {

constexpr int kNibbleWidth = 8;

const Family& nibble_family() {
  static const auto& made = *new Family("nibbles.cu", text::nibbles_cu);
  return made;
}

void require_last_axis(const Array& array, const char* what) {
  if (array.ndim() == 0)
    throw InvalidArgument(format("{} needs an axis along which numbers are packed", what));
}

}  // namespace

Array pack_nibbles(const Array& x, const Stream& stream) {
  require_last_axis(x, "pack_int4()");
  const bool bytes = x.type() == ScalarType::int8 || x.type() == ScalarType::uint8;
  if (!is_signed_integer(x.type()) && !is_unsigned_integer(x.type()))
    throw InvalidArgument(format("pack_int4() takes integers, not {}", x.identify()));
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Shape shape = x.shape();
  const std::int64_t length = shape.back();
  shape.back() = (length + 1) / 2;
  const Array made = Array::empty(device, shape, ScalarType::uint8, stream);
  if (made.size() == 0) return made;
  const Array narrow = bytes ? x : cast(x, ScalarType::int8, stream);
  const Array from = narrow.is_contiguous() ? narrow : copy(narrow, stream);
  const bool wide = length % 2 == 0 && from.address() % (2 * kNibbleWidth) == 0 &&
                    made.size() % kNibbleWidth == 0;
  const auto count = static_cast<std::uint64_t>(made.size());
  const int width = wide ? kNibbleWidth : 1;
  const LazyKernel& kernel =
      nibble_family().instance(InstanceKey().add(0, 1).add(0, 1).add(width, 4),
                               [&] { return format("pack_nibbles<{}>", width); });
  launch(kernel.on(device), format_grid(count / width, on), from.address(), made.address(), count,
         static_cast<std::uint64_t>(length));
  from.use_on(on);
  made.use_on(on);
  return made;
}

Array unpack_nibbles(const Array& packed, bool is_signed, std::int64_t length,
                     const Stream& stream) {
  require_last_axis(packed, "unpack_int4()");
  require_type(packed, ScalarType::uint8, "what unpack_int4() takes");
  Shape shape = packed.shape();
  if (length < 0) length = 2 * shape.back();
  if ((length + 1) / 2 != shape.back())
    throw InvalidArgument(format("unpack_int4(): rows of {} bytes hold {} or {} numbers, not {}",
                                 shape.back(), 2 * shape.back() - 1, 2 * shape.back(), length));
  Device& device = packed.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  shape.back() = length;
  const Array made =
      Array::empty(device, shape, is_signed ? ScalarType::int8 : ScalarType::uint8, stream);
  if (made.size() == 0) return made;
  const Array from = packed.is_contiguous() ? packed : copy(packed, stream);
  const bool wide = length % 2 == 0 && from.address() % kNibbleWidth == 0 &&
                    made.size() % (2 * kNibbleWidth) == 0;
  const auto count = static_cast<std::uint64_t>(made.size());
  const int width = wide ? kNibbleWidth : 1;
  const LazyKernel& kernel =
      nibble_family().instance(InstanceKey().add(1, 1).add(is_signed, 1).add(width, 4),
                               [&] { return format("unpack_nibbles<{}, {}>", is_signed, width); });
  launch(kernel.on(device), format_grid(wide ? count / (2 * kNibbleWidth) : count, on),
         from.address(), made.address(), count, static_cast<std::uint64_t>(length));
  from.use_on(on);
  made.use_on(on);
  return made;
}

}  // namespace kernwright::kernels
