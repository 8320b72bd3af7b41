// Checks typed arguments against a signature and converts numbers.
#include "core/arguments.h"

#include "base/counted.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace kernwright {
namespace {

/// The start of every message: the whole signature and the offending parameter.
std::string where(const KernelSignature& signature, std::size_t index) {
  const Parameter& parameter = signature.parameters[index];
  return format("{}: parameter {} ({})", signature.to_string(), index + 1, parameter.type);
}

[[noreturn]] void refuse(const KernelSignature& signature, std::size_t index,
                         const std::string& got) {
  throw ArgumentError(format("{} {}", where(signature, index), got));
}

std::string describe(const ArgumentView& view) {
  switch (view.kind) {
    case ArgumentView::Kind::number:
      return format("a number of type {}", scalar_name(*view.scalar));
    case ArgumentView::Kind::pointer:
      return view.scalar ? format("memory of {}", scalar_name(*view.scalar)) : "a pointer";
    case ArgumentView::Kind::bytes:
      return format("{} of {}", view.noun, counted(view.size, "byte"));
  }
  return "a value";
}

template <typename T>
T read(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

/// A number of any arithmetic type: the sign and the magnitude of an integer, or a double.
struct Number {
  bool is_float = false, negative = false;
  std::uint64_t magnitude = 0;
  double real = 0;
};

Number signed_number(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return {.negative = value < 0, .magnitude = value < 0 ? 0 - bits : bits};
}

Number read_number(ScalarType type, const void* data) {
  switch (type) {
    case ScalarType::boolean:
      return {.magnitude = read<bool>(data) ? 1u : 0u};
    case ScalarType::int8:
      return signed_number(read<std::int8_t>(data));
    case ScalarType::int16:
      return signed_number(read<std::int16_t>(data));
    case ScalarType::int32:
      return signed_number(read<std::int32_t>(data));
    case ScalarType::int64:
      return signed_number(read<std::int64_t>(data));
    case ScalarType::uint8:
      return {.magnitude = read<std::uint8_t>(data)};
    case ScalarType::uint16:
      return {.magnitude = read<std::uint16_t>(data)};
    case ScalarType::uint32:
      return {.magnitude = read<std::uint32_t>(data)};
    case ScalarType::uint64:
      return {.magnitude = read<std::uint64_t>(data)};
    case ScalarType::float32:
      return {.is_float = true, .real = read<float>(data)};
    default:
      return {.is_float = true, .real = read<double>(data)};
  }
}

double to_double(const Number& n) {
  if (n.is_float) return n.real;
  const auto magnitude = static_cast<double>(n.magnitude);
  return n.negative ? -magnitude : magnitude;
}

std::string to_text(const Number& n) {
  if (n.is_float) return format("{}", n.real);
  return format("{}{}", n.negative ? "-" : "", n.magnitude);
}

void store_integer(const KernelSignature& signature, std::size_t index, const Number& n,
                   ScalarType to, ArgumentSlot& slot) {
  const int bits = 8 * static_cast<int>(scalar_size(to));
  const bool is_signed = is_signed_integer(to);
  const std::uint64_t top = std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
  const std::uint64_t most = to == ScalarType::boolean ? 1 : is_signed ? top >> 1 : top;
  const std::uint64_t least = is_signed ? most + 1 : 0;  // magnitude of the smallest value
  if (n.magnitude > (n.negative ? least : most)) {
    throw ArgumentRangeError(format("{} cannot hold {}: the range is {}{} to {}",
                                    where(signature, index), to_text(n), least != 0 ? "-" : "",
                                    least, most));
  }
  const std::uint64_t value = n.negative ? 0 - n.magnitude : n.magnitude;
  std::memcpy(slot.data(), &value, sizeof value);  // little-endian: the low bytes come first
}

void store_number(const KernelSignature& signature, std::size_t index, const ArgumentView& view,
                  ArgumentSlot& slot) {
  const ScalarType to = *signature.parameters[index].scalar;
  const Number n = read_number(*view.scalar, view.data);
  if (to == ScalarType::float32) {
    const auto value = static_cast<float>(to_double(n));
    std::memcpy(slot.data(), &value, sizeof value);
  } else if (to == ScalarType::float64) {
    const double value = to_double(n);
    std::memcpy(slot.data(), &value, sizeof value);
  } else if (to == ScalarType::boolean || is_signed_integer(to) || is_unsigned_integer(to)) {
    if (n.is_float) {
      refuse(signature, index,
             format("got the floating number {}: convert it to an integer first", n.real));
    }
    store_integer(signature, index, n, to, slot);
  } else {
    refuse(signature, index,
           format("got {}: pass the {} bytes of the device type in a struct", describe(view),
                  scalar_size(to)));
  }
}

void check_device(const KernelSignature& signature, std::size_t index, const Device& device,
                  const ArgumentView& view) {
  if (view.device == nullptr || view.device == &device) return;
  refuse(signature, index,
         format("got {} of another device ({}); the kernel runs on {}",
                view.kind == ArgumentView::Kind::pointer ? "memory" : view.noun,
                view.device->identify(), device.identify()));
}

void store_pointer(const KernelSignature& signature, std::size_t index, const ArgumentView& view,
                   ArgumentSlot& slot) {
  const Parameter& parameter = signature.parameters[index];
  const bool known = parameter.scalar && view.scalar;
  const bool any_byte = parameter.any_byte_pointee && view.scalar && scalar_size(*view.scalar) == 1;
  if (known && *parameter.scalar != *view.scalar && !any_byte) {
    refuse(signature, index, format("got {}", describe(view)));
  }
  if (view.read_only && !parameter.pointee_const) {
    refuse(signature, index, "got read-only memory, which a pointer to non-const could change");
  }
  if (parameter.lanes > 1 && parameter.pointee_size != 0 &&
      view.address % parameter.pointee_size != 0) {
    refuse(signature, index,
           format("got the address {:#x}, which is not a multiple of {} bytes", view.address,
                  parameter.pointee_size));
  }
  static_assert(sizeof view.address == sizeof slot);
  std::memcpy(slot.data(), &view.address, sizeof view.address);
}

/// Bits are stored as they are: an integer of either sign, or an address.
void store_untyped(const KernelSignature& signature, std::size_t index, const ArgumentView& view,
                   ArgumentSlot& slot) {
  const std::size_t size = signature.parameters[index].size;
  if (view.kind == ArgumentView::Kind::pointer) {
    if (size != sizeof view.address) refuse(signature, index, format("got {}", describe(view)));
    return store_pointer(signature, index, view, slot);
  }
  const Number n = read_number(*view.scalar, view.data);
  if (n.is_float) {
    refuse(signature, index,
           format("got the floating number {}: the object code does not tell "
                  "whether it takes one; pass its bytes in a struct",
                  n.real));
  }
  const auto width = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
  const ScalarType first = n.negative ? ScalarType::int8 : ScalarType::uint8;
  store_integer(signature, index, n, static_cast<ScalarType>(static_cast<int>(first) + width),
                slot);
}

/// Returns where the bytes of the argument are.
void* pack_one(const KernelSignature& signature, std::size_t index, const Device& device,
               const ArgumentView& view, ArgumentSlot& slot) {
  const Parameter& parameter = signature.parameters[index];
  if (view.problem != nullptr) refuse(signature, index, view.problem);
  check_device(signature, index, device, view);
  if (parameter.kind == ParameterKind::pointer) {
    if (view.kind != ArgumentView::Kind::pointer) {
      refuse(signature, index,
             format("got {}: pass an Array, a Pointer or nullptr", describe(view)));
    }
    store_pointer(signature, index, view, slot);
    return slot.data();
  }
  if (parameter.kind == ParameterKind::untyped && view.kind != ArgumentView::Kind::bytes) {
    store_untyped(signature, index, view, slot);
    return slot.data();
  }
  if (view.kind == ArgumentView::Kind::pointer) {
    refuse(signature, index, format("got {}", describe(view)));
  }
  if (parameter.kind == ParameterKind::scalar && view.kind == ArgumentView::Kind::number) {
    store_number(signature, index, view, slot);
    return slot.data();
  }
  if (view.size != parameter.size) {
    refuse(signature, index, format("takes {} bytes and got {}", parameter.size, describe(view)));
  }
  return const_cast<void*>(view.data);
}

}  // namespace

void pack_arguments(const KernelSignature& signature, const Device& device,
                    std::span<const ArgumentView> views, std::span<ArgumentSlot> slots,
                    std::span<void*> pointers) {
  const std::size_t count = signature.parameters.size();
  if (views.size() < count) {
    const Parameter& missing = signature.parameters[views.size()];
    throw ArgumentError(format("{}: parameter {} ({}) is missing: {} given", signature.to_string(),
                               views.size() + 1, missing.type, counted(views.size(), "argument")));
  }
  if (views.size() > count) {
    throw ArgumentError(format("{}: takes {} and got {}", signature.to_string(),
                               counted(count, "argument"), views.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    pointers[i] = pack_one(signature, i, device, views[i], slots[i]);
  }
}

}  // namespace kernwright
