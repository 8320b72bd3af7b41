// Arithmetic of shapes and strides; every product is checked for overflow.
#include "array/shape.h"

#include "base/errors.h"
#include "base/format.h"

namespace kernwright {
namespace {

std::int64_t checked_product(std::int64_t a, std::int64_t b, std::span<const std::int64_t> shape) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw InvalidArgument(format("shape {}: more than 2^63 bytes", shape_to_string(shape)));
  }
  return product;
}

/// Neighbouring axes that can be walked with one stride.
struct Run {
  std::int64_t count;
  std::int64_t stride;  ///< bytes, of the innermost axis
};

std::vector<Run> coalesce(std::span<const std::int64_t> shape,
                          std::span<const std::int64_t> strides) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    std::int64_t whole = 0;
    const bool overflow = __builtin_mul_overflow(strides[i], shape[i], &whole);
    if (!runs.empty() && !overflow && runs.back().stride == whole) {
      runs.back() = {runs.back().count * shape[i], strides[i]};
    } else {
      runs.push_back({shape[i], strides[i]});
    }
  }
  return runs;
}

}  // namespace

std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      throw InvalidArgument(
          format("shape {}: an extent must not be negative", shape_to_string(shape)));
    }
    // An extent of 0 must not hide an overflow of the others from callers that multiply them.
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, extent, &count)) {
      throw InvalidArgument(format("shape {}: more than 2^63 elements", shape_to_string(shape)));
    }
  }
  return empty ? 0 : count;
}

Shape contiguous_strides(std::span<const std::int64_t> shape, std::size_t element_size) {
  Shape strides(shape.size());
  auto stride = static_cast<std::int64_t>(element_size);
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (shape[i] != 0) stride = checked_product(stride, shape[i], shape);
  }
  return strides;
}

bool strides_are_contiguous(std::span<const std::int64_t> shape,
                            std::span<const std::int64_t> strides,
                            std::size_t element_size) noexcept {
  for (const std::int64_t extent : shape) {
    if (extent == 0) return true;
  }
  auto expected = static_cast<std::int64_t>(element_size);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Shape resolve_reshape(std::span<const std::int64_t> from, Shape shape) {
  const auto refuse = [&](const char* why) {
    return InvalidArgument(format("cannot reshape {} into {}: {}", shape_to_string(from),
                                  shape_to_string(shape), why));
  };
  const std::int64_t count = element_count(from);
  std::optional<std::size_t> open;
  Shape known;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) {
      known.push_back(shape[i]);
    } else if (shape[i] != -1) {
      throw refuse("an extent must be positive, 0, or -1 for the rest");
    } else if (open) {
      throw refuse("only one extent may be -1");
    } else {
      open = i;
    }
  }
  const std::int64_t known_count = element_count(known);
  if (open) {
    if (known_count == 0) throw refuse("-1 has no meaning beside an extent of 0");
    if (count % known_count != 0) throw refuse("the numbers of elements differ");
    shape[*open] = count / known_count;
  } else if (known_count != count) {
    throw refuse("the numbers of elements differ");
  }
  return shape;
}

std::optional<Shape> reshape_strides(std::span<const std::int64_t> shape,
                                     std::span<const std::int64_t> strides,
                                     std::span<const std::int64_t> to, std::size_t element_size) {
  if (element_count(to) == 0) return contiguous_strides(to, element_size);
  const std::vector<Run> runs = coalesce(shape, strides);
  Shape result(to.size());
  std::size_t axis = to.size();
  std::int64_t stride = static_cast<std::int64_t>(element_size);
  // From the innermost run outwards, each run must be cut exactly by the new extents.
  for (std::size_t r = runs.size(); r-- > 0;) {
    std::int64_t remaining = runs[r].count;
    stride = runs[r].stride;
    while (remaining > 1) {
      const std::int64_t extent = to[--axis];
      if (remaining % extent != 0) return std::nullopt;
      result[axis] = stride;
      // The last product may leave 64 bits; it is then the stride of extents of 1 only.
      if (__builtin_mul_overflow(stride, extent, &stride)) stride = 0;
      remaining /= extent;
    }
  }
  while (axis > 0) result[--axis] = stride;  // only extents of 1 are left
  return result;
}

int normalize_axis(int axis, int ndim) {
  if (axis < -ndim || axis >= ndim) {
    throw AxisError(format("axis {} is out of range for an array of {} dimensions", axis, ndim));
  }
  return axis < 0 ? axis + ndim : axis;
}

ByteRange byte_range(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                     std::size_t element_size) {
  if (element_count(shape) == 0) return {};
  ByteRange range{0, static_cast<std::int64_t>(element_size)};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t reach = checked_product(shape[i] - 1, strides[i], shape);
    std::int64_t& bound = reach < 0 ? range.low : range.high;
    if (__builtin_add_overflow(bound, reach, &bound)) {
      throw InvalidArgument(format("shape {}: more than 2^63 bytes", shape_to_string(shape)));
    }
  }
  return range;
}

std::string shape_to_string(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += format("{}{}", i == 0 ? "" : ", ", shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace kernwright
