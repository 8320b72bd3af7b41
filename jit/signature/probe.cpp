// The probe's templates, and the reading of what they are mangled to.
#include "jit/signature/probe.h"

#include <charconv>

#include "base/errors.h"
#include "base/format.h"
#include "jit/signature/cuda_types.h"
#include "jit/signature/mangled_type.h"

namespace kernwright {
namespace {

// A kernel that is declared and never defined: its name can be asked for, and no code is made.
// A parameter is mangled to its type, the type that carries its value (an enum's integer), size,
// alignment and the size of what it points to (0 for void, functions and incomplete types).
constexpr std::string_view kProbeText = R"probe(

#line 1 "kernwright_probe"
namespace kernwright_probe_ {
template <class kernwright_T_, class = void> struct kernwright_pointee_ {
  enum : unsigned long long { kernwright_size_ = 0 };
};
template <class kernwright_T_>
struct kernwright_pointee_<kernwright_T_*, decltype(void(sizeof(kernwright_T_)))> {
  enum : unsigned long long { kernwright_size_ = sizeof(kernwright_T_) };
};
template <class kernwright_T_, bool = __is_enum(kernwright_T_)> struct kernwright_plain_ {
  typedef kernwright_T_ kernwright_type_;
};
template <class kernwright_T_> struct kernwright_plain_<kernwright_T_, true> {
  typedef __underlying_type(kernwright_T_) kernwright_type_;
};
template <class kernwright_T_, class kernwright_U_, unsigned long long... kernwright_N_>
struct kernwright_parameter_;
template <class... kernwright_P_> struct kernwright_list_;
template <class... kernwright_A_>
__device__ kernwright_list_<kernwright_parameter_<
    kernwright_A_, typename kernwright_plain_<kernwright_A_>::kernwright_type_,
    sizeof(kernwright_A_), alignof(kernwright_A_),
    kernwright_pointee_<kernwright_A_>::kernwright_size_>...>
kernwright_of_(void (*)(kernwright_A_...));
template <class kernwright_T_> __global__ void kernwright_ask_();
}
)probe";

constexpr std::size_t kParameterFields = 3;  // size, alignment, pointee size
constexpr std::size_t kMaxParameterBytes = std::size_t{1} << 20;

[[noreturn]] void not_understood(std::string_view lowered) {
  throw InvalidArgument(format("the probe's answer is not understood: {}", lowered.substr(0, 200)));
}

/// The one template argument of kernwright_ask_<...>.
TypeRef asked_type(std::string_view lowered) {
  const TypeRef name = demangle_name(lowered);
  if (name->text != "kernwright_probe_::kernwright_ask_" || name->children.size() != 1) {
    not_understood(lowered);
  }
  return name->children[0];
}

std::size_t to_size(const TypeNode& literal, std::string_view lowered) {
  std::size_t value = 0;
  const auto [end, error] =
      std::from_chars(literal.text.data(), literal.text.data() + literal.text.size(), value);
  if (literal.kind != TypeNodeKind::integer || error != std::errc() ||
      end != literal.text.data() + literal.text.size()) {
    not_understood(lowered);
  }
  return value;
}

void describe_pointee(const TypeNode& pointee, Parameter& parameter) {
  parameter.pointee_const = pointee.kind == TypeNodeKind::qualified && pointee.is_const;
  const TypeNode* element = &unqualified(pointee);
  while (element->kind == TypeNodeKind::array) {
    if (element->children[0]->is_const) parameter.pointee_const = true;
    element = &unqualified(*element->children[0]);
  }
  const ElementType type = element_type(*element);
  parameter.scalar = type.scalar;
  parameter.lanes = type.lanes > 0 ? type.lanes : 1;
  parameter.any_byte_pointee = element->kind == TypeNodeKind::builtin &&
                               (element->text == "char" || element->text == "unsigned char" ||
                                element->text == "signed char");
}

void describe_value(const TypeNode& type, Parameter& parameter) {
  const ElementType element = element_type(type);
  parameter.scalar = element.scalar;
  if (!element.scalar) {
    parameter.kind = ParameterKind::aggregate;
  } else if (element.lanes > 0) {
    parameter.kind = ParameterKind::vector;
    parameter.lanes = element.lanes;
  } else {
    parameter.kind = ParameterKind::scalar;
  }
}

std::size_t alignment_of(const TypeNode& node, std::string_view lowered) {
  const std::size_t alignment = to_size(*node.children[2]->children[1], lowered);
  const bool power = alignment > 0 && (alignment & (alignment - 1)) == 0;
  if (!power || alignment > kMaxParameterBytes) not_understood(lowered);
  return alignment;
}

/// A parameter of which only the type is told.
ProbedParameter parameter_of_type(const TypeNode& declared, std::string_view lowered) {
  const auto layout = known_layout(declared);
  if (!layout) not_understood(lowered);
  const TypeNode& type = unqualified(declared);
  ProbedParameter result;
  Parameter& parameter = result.parameter;
  parameter.type = spell(declared);
  parameter.size = layout->size;
  parameter.alignment = layout->alignment;
  if (type.kind != TypeNodeKind::pointer) {
    describe_value(type, parameter);
    return result;
  }
  const TypeNode& pointee = *type.children[0];
  const bool is_void = unqualified(pointee).text == "void";
  const auto pointee_layout = is_void ? TypeLayout{} : known_layout(pointee);
  if (!pointee_layout) not_understood(lowered);
  parameter.kind = ParameterKind::pointer;
  parameter.pointee_size = pointee_layout->size;
  describe_pointee(pointee, parameter);
  return result;
}

ProbedParameter read_parameter(const TypeNode& node, std::string_view lowered) {
  const bool whole = node.kind == TypeNodeKind::named && node.children.size() == 3 &&
                     node.children[2]->kind == TypeNodeKind::pack &&
                     node.children[2]->children.size() == kParameterFields;
  if (!whole) not_understood(lowered);
  const TypeNode& declared = *node.children[0];
  const TypeNode& type = unqualified(declared);
  ProbedParameter result;
  Parameter& parameter = result.parameter;
  parameter.type = spell(declared);
  parameter.size = to_size(*node.children[2]->children[0], lowered);
  parameter.alignment = alignment_of(node, lowered);
  result.is_reference =
      type.kind == TypeNodeKind::lvalue_reference || type.kind == TypeNodeKind::rvalue_reference;
  if (type.kind == TypeNodeKind::pointer) {
    parameter.kind = ParameterKind::pointer;
    parameter.pointee_size = to_size(*node.children[2]->children[2], lowered);
    describe_pointee(*type.children[0], parameter);
  } else {
    describe_value(*node.children[1], parameter);
  }
  return result;
}

}  // namespace

std::string_view probe_text() noexcept { return kProbeText; }

std::string kernel_probe(std::string_view kernel) {
  return format(
      "kernwright_probe_::kernwright_ask_<decltype(kernwright_probe_::kernwright_of_({}))>",
      kernel);
}

std::string symbol_probe(std::string_view symbol) {
  return format("kernwright_probe_::kernwright_ask_<decltype({})>", symbol);
}

std::string kernel_type_probe(std::string_view kernel) {
  return format("kernwright_probe_::kernwright_ask_<decltype(&{})>", kernel);
}

bool is_probe_answer(std::string_view lowered) noexcept {
  return lowered.starts_with("_ZN17kernwright_probe_15kernwright_ask_");
}

std::vector<ProbedParameter> read_kernel_probe(std::string_view lowered) {
  const TypeRef list = asked_type(lowered);
  const bool is_type =
      list->kind == TypeNodeKind::pointer && list->children[0]->kind == TypeNodeKind::function;
  if (!is_type && list->text != "kernwright_probe_::kernwright_list_") not_understood(lowered);
  std::vector<TypeRef> nodes = is_type ? list->children[0]->children : list->children;
  if (is_type) {
    nodes.erase(nodes.begin());  // the result
  } else if (nodes.size() == 1 && nodes[0]->kind == TypeNodeKind::pack) {
    nodes = nodes[0]->children;
  }
  std::vector<ProbedParameter> result;
  std::size_t offset = 0;
  for (const TypeRef& node : nodes) {
    result.push_back(is_type ? parameter_of_type(*node, lowered) : read_parameter(*node, lowered));
    Parameter& parameter = result.back().parameter;
    if (parameter.size > kMaxParameterBytes) not_understood(lowered);
    const std::size_t alignment = parameter.alignment;
    parameter.offset = (offset + alignment - 1) / alignment * alignment;
    offset = parameter.offset + parameter.size;
  }
  return result;
}

SymbolType read_symbol_probe(std::string_view lowered) {
  const TypeRef type = asked_type(lowered);
  SymbolType result;
  result.type = spell(*type);
  const TypeNode* element = &unqualified(*type);
  while (element->kind == TypeNodeKind::array) {
    std::size_t extent = 0;
    std::from_chars(element->text.data(), element->text.data() + element->text.size(), extent);
    result.shape.push_back(extent);
    element = &unqualified(*element->children[0]);
  }
  const ElementType number = element_type(*element);
  result.scalar = number.scalar;
  result.lanes = number.lanes > 0 ? number.lanes : 1;
  return result;
}

}  // namespace kernwright
