// Typed arguments of C++ launches: what each offers, by the rules of core/launch/parameter_rules.h.
#include "core/arguments.h"

#include "base/counted.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/launch/parameter_rules.h"
#include "core/number.h"

#include <cstring>

namespace kernwright {
namespace {

/// One argument, before its conversion to the parameter.
struct Place {
  const KernelSignature& signature;
  std::size_t index;
  const Parameter& parameter() const { return signature.parameters[index]; }
};

[[noreturn]] void refuse(const Place& place, std::string_view problem) {
  throw ArgumentError(at_parameter(place.signature, place.index, problem));
}

[[noreturn]] void refuse_range(const Place& place, std::string_view problem) {
  throw ArgumentRangeError(at_parameter(place.signature, place.index, problem));
}

std::string describe(const ArgumentView& view) {
  switch (view.kind) {
    case ArgumentView::Kind::number:
      return format("a number of type {} ({})", scalar_name(*view.scalar),
                    Number::read(*view.scalar, view.data).to_string());
    case ArgumentView::Kind::pointer:
      return view.scalar ? format("memory of {}", scalar_name(*view.scalar)) : "a pointer";
    case ArgumentView::Kind::bytes:
      return view.noun;
  }
  return "a value";
}

void store_number(const Place& place, const ArgumentView& view, ArgumentSlot& slot) {
  const ScalarType to = *place.parameter().scalar;
  if (scalar_size(to) > slot.size())
    refuse(place, wrong_size_text(place.parameter(), describe(view), view.size));
  if (*view.scalar == to) {
    std::memcpy(slot.data(), view.data, scalar_size(to));
    return;
  }
  const Number number = Number::read(*view.scalar, view.data);
  switch (encode(number, to, slot.data())) {
    case Fit::exact:
      return;
    case Fit::wrong_kind:
      refuse(place, wrong_kind_text(place.parameter(), describe(view), to));
    case Fit::out_of_range:
      refuse_range(place, out_of_range_text(place.parameter(), number.to_string(), to));
  }
}

void store_pointer(const Place& place, const ArgumentView& view, ArgumentSlot& slot) {
  const Parameter& parameter = place.parameter();
  static_assert(sizeof view.address == sizeof slot);
  // The common kinds, recognised by their type alone.
  const bool fits = parameter.scalar == view.scalar && view.scalar &&
                    parameter.pointee_size <= scalar_size(*view.scalar) &&
                    (!view.read_only || parameter.pointee_const);
  if (fits) {
    std::memcpy(slot.data(), &view.address, sizeof view.address);
    return;
  }
  const MemoryArgument memory{.address = view.address,
                              .type = view.scalar,
                              .bytes = view.memory_bytes,
                              .read_only = view.read_only};
  const std::string problem = memory_problem(parameter, parameter_pointee(parameter), memory);
  if (!problem.empty()) refuse(place, problem);
  std::memcpy(slot.data(), &view.address, sizeof view.address);
}

/// Bits are stored as they are: an integer of either sign, or an address.
void store_untyped(const Place& place, const ArgumentView& view, ArgumentSlot& slot) {
  const Parameter& parameter = place.parameter();
  if (view.kind == ArgumentView::Kind::pointer) {
    if (parameter.size != sizeof view.address)
      refuse(place, wrong_size_text(parameter, describe(view), sizeof view.address));
    return store_pointer(place, view, slot);
  }
  const Number number = Number::read(*view.scalar, view.data);
  switch (encode_untyped(number, parameter.size, slot.data())) {
    case Fit::exact:
      return;
    case Fit::wrong_kind:
      refuse(place, format("got {}: the object code does not tell whether it takes one; pass its "
                           "bytes in a struct",
                           describe(view)));
    case Fit::out_of_range:
      refuse_range(place, out_of_range_text(parameter, number.to_string()));
  }
}

void check_device(const Place& place, const Device& device, const ArgumentView& view) {
  if (view.device == nullptr || view.device == &device) return;
  const bool is_memory = view.kind == ArgumentView::Kind::pointer;
  refuse(place, other_device_text(is_memory ? "memory" : view.noun, *view.device, device));
}

/// Returns where the bytes of the argument are.
void* pack_one(const Place& place, const Device& device, const ArgumentView& view,
               ArgumentSlot& slot) {
  const Parameter& parameter = place.parameter();
  if (view.problem != nullptr) refuse(place, view.problem);
  check_device(place, device, view);
  if (parameter.kind == ParameterKind::pointer) {
    if (view.kind != ArgumentView::Kind::pointer) {
      refuse(place, format("got {}: {}", describe(view),
                           wants_text(parameter, "an Array, a Pointer or nullptr")));
    }
    store_pointer(place, view, slot);
    return slot.data();
  }
  if (parameter.kind == ParameterKind::untyped && view.kind != ArgumentView::Kind::bytes) {
    store_untyped(place, view, slot);
    return slot.data();
  }
  if (view.kind == ArgumentView::Kind::pointer) {
    refuse(place, format("got {}: {}", describe(view),
                         wants_text(parameter, parameter.kind == ParameterKind::scalar
                                                   ? number_family(*parameter.scalar)
                                                   : format("{} bytes", parameter.size))));
  }
  if (parameter.kind == ParameterKind::scalar && view.kind == ArgumentView::Kind::number) {
    store_number(place, view, slot);
    return slot.data();
  }
  if (view.size != parameter.size) {
    refuse(place, wrong_size_text(parameter, describe(view), view.size));
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
    pointers[i] = pack_one({signature, i}, device, views[i], slots[i]);
  }
}

}  // namespace kernwright
