// Advice by the kernel's use of the memory: a copy is right only where it just reads.
#include "bindings/arguments/argument_advice.h"

#include "base/format.h"

namespace kernwright::python {
namespace {

bool is_byte(ScalarType type) { return type == ScalarType::uint8 || type == ScalarType::int8; }

/// Whether the bytes as they are make whole elements of `wanted`.
bool can_view(const ArrayArgument& array, ScalarType wanted) {
  const std::size_t from = scalar_size(*array.type), to = scalar_size(wanted);
  if (from == to) return true;
  const bool divides = array.nbytes % to == 0 && array.address % to == 0;
  return array.contiguous && divides && (is_byte(*array.type) || is_byte(wanted));
}

std::string expression(const ArgumentPlan& plan, Holder holder) {
  return holder == Holder::foreign ? format("kw.asarray({})", named(plan)) : named(plan);
}

std::string view_text(const ArgumentPlan& plan, ScalarType wanted, Holder holder) {
  const std::string view = format("{}.view(\"{}\")", expression(plan, holder), scalar_name(wanted));
  return holder == Holder::host ? format("the same memory as {}", view)
                                : format("{}, which is the same memory", view);
}

/// Structs: a conversion of numbers would lose their bytes.
std::string struct_advice(const ArgumentPlan& plan, const ArrayArgument& array, Holder holder) {
  std::string advice;
  if (can_view(array, ScalarType::uint8)) {
    advice = format("; pass {}, where it holds such structs, or",
                    view_text(plan, ScalarType::uint8, holder));
  } else {
    advice = ";";
  }
  const bool read = plan.parameter->pointee_const;
  if (plan.parameter->fields.empty()) {
    return advice + " pass an array of uint8 that holds their bytes";
  }
  return advice + format(
                      " fill values = np.zeros(n, kernel.parameters[{}].dtype) on the host and "
                      "pass kw.{}(values) or kw.asarray(values.view(\"uint8\"))",
                      plan.index, read ? "In" : "InOut");
}

/// Addresses: a conversion of numbers makes none.
std::string addresses_advice(const ArgumentPlan& plan, const ArrayArgument& array, Holder holder) {
  if (!can_view(array, ScalarType::uint64)) {
    return "; pass kw.asarray([a.ptr for a in arrays], \"uint64\")";
  }
  return format("; pass {}, where it holds addresses", view_text(plan, ScalarType::uint64, holder));
}

}  // namespace

std::string named(const ArgumentPlan& plan) { return std::string(name_in_text(*plan.parameter)); }

std::string type_advice(const ArgumentPlan& plan, const ArrayArgument& array, ScalarType wanted,
                        Holder holder) {
  if (!array.type) return {};
  const Parameter& parameter = *plan.parameter;
  if (!parameter.scalar && !parameter.any_byte_pointee) {
    return wanted == ScalarType::uint64 ? addresses_advice(plan, array, holder)
                                        : struct_advice(plan, array, holder);
  }
  const std::string name = expression(plan, holder);
  const std::string_view type = scalar_name(wanted);
  const bool read = plan.parameter->pointee_const;
  std::string advice;
  if (can_view(array, wanted)) advice = "; pass " + view_text(plan, wanted, holder);
  const char* const joint = advice.empty() ? "; pass" : ", or";
  if (read) return advice + format("{} {}.astype(\"{}\"), a converted copy", joint, name, type);
  if (holder == Holder::host) {
    return advice + format("{} a NumPy array of {} and copy back from it", joint, type);
  }
  const char* const make = advice.empty() ? "; make" : ", or make";
  return advice + format(
                      "{} it with dtype=\"{}\", or launch on t = {}.astype(\"{}\") and copy back: "
                      "{}[...] = t",
                      make, type, name, type, name);
}

std::string contiguity_advice(const ArgumentPlan& plan) {
  const std::string name = named(plan);
  const std::string strided = format("kw.strided({}) where the kernel knows the strides", name);
  if (plan.parameter->pointee_const) return format("pass {}.copy(), or {}", name, strided);
  return format(
      "pass {}, or launch on a contiguous array t of its values and copy back: {}[...] = t",
      strided, name);
}

}  // namespace kernwright::python
