// The probe's templates, and the reading of their mangled names.
#include "jit/signature/probe.h"

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/format.h"
#include "jit/signature/cuda_types.h"
#include "jit/signature/mangled_type.h"
#include "jit/signature/probe_members.h"

namespace kernwright {
namespace {

// A kernel, declared and never defined: its name can be asked for, and no code is made. A parameter
// is mangled to its type, the type of its value (an enum's integer), size, alignment and the size
// of its target (0 for void, functions and incomplete types). They are parameters of a function
// type: types of internal linkage do not make this internal.
constexpr std::string_view kTemplates = R"probe(
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
template <class kernwright_T_> struct kernwright_plain_<kernwright_T_*, false> {
  typedef typename kernwright_plain_<kernwright_T_>::kernwright_type_* kernwright_type_;
};
template <class kernwright_T_, unsigned long long kernwright_N_>
struct kernwright_plain_<kernwright_T_[kernwright_N_], false> {
  typedef typename kernwright_plain_<kernwright_T_>::kernwright_type_
      kernwright_type_[kernwright_N_];
};
template <class kernwright_T_> struct kernwright_element_ {
  typedef kernwright_T_ kernwright_type_;
  enum : bool {
    kernwright_is_class_ = (__is_class(kernwright_T_) || __is_union(kernwright_T_)) &&
                           kernwright_pointee_<kernwright_T_*>::kernwright_size_ != 0
  };
};
template <class kernwright_T_, unsigned long long kernwright_N_>
struct kernwright_element_<kernwright_T_[kernwright_N_]> : kernwright_element_<kernwright_T_> {};
template <class kernwright_T_> struct kernwright_pointed_ : kernwright_element_<kernwright_T_> {};
template <class kernwright_T_>
struct kernwright_pointed_<kernwright_T_*> : kernwright_element_<kernwright_T_> {};
template <class kernwright_T_, bool> struct kernwright_members_ {
  typedef void kernwright_type_;
};
template <class kernwright_E_> struct kernwright_layout_
    : kernwright_members_<typename kernwright_E_::kernwright_type_,
                          kernwright_E_::kernwright_is_class_> {};
template <unsigned long long, class...> struct kernwright_list_;
template <class kernwright_T_, class kernwright_U_, class kernwright_L_,
          unsigned long long... kernwright_N_>
struct kernwright_member_;
template <class kernwright_T_, class kernwright_U_, class kernwright_L_,
          unsigned long long... kernwright_N_>
struct kernwright_parameter_;
template <class kernwright_T_> struct kernwright_told_ {
  typedef kernwright_parameter_<
      kernwright_T_, typename kernwright_plain_<kernwright_T_>::kernwright_type_,
      typename kernwright_layout_<kernwright_pointed_<kernwright_T_>>::kernwright_type_,
      sizeof(kernwright_T_), alignof(kernwright_T_),
      kernwright_pointee_<kernwright_T_>::kernwright_size_> kernwright_type_;
};
template <class kernwright_T_> struct kernwright_told_<kernwright_T_&> {
  typedef kernwright_parameter_<kernwright_T_&, void, void, 1, 1, 0> kernwright_type_;
};
template <class kernwright_T_> struct kernwright_told_<kernwright_T_&&> {
  typedef kernwright_parameter_<kernwright_T_&&, void, void, 1, 1, 0> kernwright_type_;
};
template <class kernwright_T_> struct kernwright_of_;
template <class... kernwright_A_> struct kernwright_of_<void (*)(kernwright_A_...)> {
  typedef void (*kernwright_type_)(typename kernwright_told_<kernwright_A_>::kernwright_type_...);
};
template <class kernwright_T_> struct kernwright_variable_;
template <class kernwright_T_> struct kernwright_variable_<kernwright_T_&> {
  typedef void (*kernwright_type_)(kernwright_parameter_<
      kernwright_T_, typename kernwright_plain_<kernwright_T_>::kernwright_type_,
      typename kernwright_layout_<kernwright_element_<kernwright_T_>>::kernwright_type_,
      kernwright_pointee_<kernwright_T_*>::kernwright_size_, alignof(kernwright_T_), 0>);
};
template <class kernwright_T_> __attribute__((global)) void kernwright_ask_();
)probe";

/// The words of the templates, the questions and their name expressions. A macro may redefine them,
/// and the compiler cannot save and restore macros (it knows no push_macro).
constexpr std::array<std::string_view, 25> kWords{"namespace",
                                                  "template",
                                                  "class",
                                                  "struct",
                                                  "typename",
                                                  "enum",
                                                  "typedef",
                                                  "unsigned",
                                                  "long",
                                                  "bool",
                                                  "void",
                                                  "true",
                                                  "false",
                                                  "sizeof",
                                                  "alignof",
                                                  "decltype",
                                                  "global",
                                                  "__attribute__",
                                                  "__is_enum",
                                                  "__is_class",
                                                  "__is_union",
                                                  "__is_empty",
                                                  "__is_final",
                                                  "__is_polymorphic",
                                                  "__underlying_type"};

/// Lines of questions are numbered from here.
constexpr int kFirstQuestion = 1000;

constexpr std::size_t kParameterFields = 3;  // size, alignment, pointee size
constexpr std::size_t kMaxParameterBytes = std::size_t{1} << 20;

constexpr std::string_view kQuestion = "kernwright_question_";

/// Whether a lowered name is a question's: the length, and the name after it.
bool is_question(std::string_view lowered) {
  if (!lowered.starts_with("_Z")) return false;
  lowered.remove_prefix(std::min(lowered.find_first_not_of("0123456789", 2), lowered.size()));
  return lowered.starts_with(kQuestion);
}

/// The one template argument of kernwright_ask_<...>, or the one parameter of a question.
TypeRef asked_type(std::string_view lowered) {
  if (is_question(lowered)) {
    const FunctionNode function = demangle_function(lowered);
    if (function.parameters.size() != 1) answer_not_understood(lowered);
    return function.parameters[0];
  }
  const TypeRef name = demangle_name(lowered);
  if (name->text != "kernwright_probe_::kernwright_ask_" || name->children.size() != 1) {
    answer_not_understood(lowered);
  }
  return name->children[0];
}

/// `carrier` is the same with an enum's integer in the place of the enum.
void describe_pointee(const TypeNode& pointee, const TypeNode& carrier, Parameter& parameter) {
  parameter.pointee_const = pointee.kind == TypeNodeKind::qualified && pointee.is_const;
  const TypeNode* element = &unqualified(pointee);
  while (element->kind == TypeNodeKind::array) {
    if (element->children[0]->is_const) parameter.pointee_const = true;
    element = &unqualified(*element->children[0]);
  }
  const TypeNode* carried = &unqualified(carrier);
  while (carried->kind == TypeNodeKind::array) carried = &unqualified(*carried->children[0]);
  const ElementType type = element_type(*carried);
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
  const std::size_t alignment = to_size(*node.children[3]->children[1], lowered);
  const bool power = alignment > 0 && (alignment & (alignment - 1)) == 0;
  if (!power || alignment > kMaxParameterBytes) answer_not_understood(lowered);
  return alignment;
}

ProbedParameter read_parameter(const TypeNode& node, std::span<const std::string> members,
                               std::string_view lowered) {
  const bool whole = node.kind == TypeNodeKind::named && node.children.size() == 4 &&
                     node.children[3]->kind == TypeNodeKind::pack &&
                     node.children[3]->children.size() == kParameterFields;
  if (!whole) answer_not_understood(lowered);
  const TypeNode& declared = *node.children[0];
  const TypeNode& type = unqualified(declared);
  ProbedParameter result;
  Parameter& parameter = result.parameter;
  parameter.type = spell(declared);
  parameter.size = to_size(*node.children[3]->children[0], lowered);
  parameter.alignment = alignment_of(node, lowered);
  result.is_reference =
      type.kind == TypeNodeKind::lvalue_reference || type.kind == TypeNodeKind::rvalue_reference;
  if (type.kind == TypeNodeKind::pointer) {
    parameter.kind = ParameterKind::pointer;
    parameter.pointee_size = to_size(*node.children[3]->children[2], lowered);
    const TypeNode& carrier = unqualified(*node.children[1]);
    if (carrier.kind != TypeNodeKind::pointer) answer_not_understood(lowered);
    describe_pointee(*type.children[0], *carrier.children[0], parameter);
    parameter.element_size = parameter.pointee_size;
    for (const std::size_t extent : array_element(*type.children[0], lowered).shape) {
      if (extent != 0) parameter.element_size /= extent;
    }
  } else {
    describe_value(*node.children[1], parameter);
    parameter.element_size = parameter.size;
  }
  if (!parameter.scalar) {
    parameter.fields = read_members(*node.children[2], parameter.element_size, members, lowered);
  }
  return result;
}

/// The parameter types of an answer's function type.
std::vector<TypeRef> answered_types(std::string_view lowered) {
  const TypeRef asked = asked_type(lowered);
  const bool is_type =
      asked->kind == TypeNodeKind::pointer && asked->children[0]->kind == TypeNodeKind::function;
  if (!is_type) answer_not_understood(lowered);
  const std::vector<TypeRef>& types = asked->children[0]->children;
  return {types.begin() + 1, types.end()};  // without the result
}

bool is_described(const TypeNode& node) {
  return node.text == "kernwright_probe_::kernwright_parameter_";
}

std::string parameters_of(std::string_view kernel) {
  return format("kernwright_probe_::kernwright_of_<decltype(&*({}))>::kernwright_type_", kernel);
}

std::string told_variable(std::string_view symbol) {
  return format("kernwright_probe_::kernwright_variable_<decltype(({}))>::kernwright_type_",
                symbol);
}

/// Whether the size of the pointed-to type is known, and 0 for void.
bool tells_pointee(const TypeNode& declared) {
  const TypeNode& type = unqualified(declared);
  if (type.kind != TypeNodeKind::pointer) return true;
  const TypeNode& pointee = *type.children[0];
  return unqualified(pointee).text == "void" || known_layout(pointee);
}

}  // namespace

std::string_view probe_templates() noexcept {
  static const std::string text = [] {
    std::string lines = "\n\n";
    for (const std::string_view word : kWords) lines += format("#undef {}\n", word);
    return lines + format("#line 1 \"{}\"{}", kProbeFile, kTemplates);
  }();
  return text;
}

std::string probe_text(std::span<const std::string> members,
                       std::span<const std::string> questions) {
  std::string text(probe_templates());
  if (!members.empty()) text += member_templates(members);
  text += "}\n";
  if (!questions.empty()) text += format("#line {} \"{}\"\n", kFirstQuestion, kProbeFile);
  for (const std::string& question : questions) (text += question) += '\n';
  return text;
}

std::string kernel_probe(std::string_view kernel) {
  return format("kernwright_probe_::kernwright_ask_<{}>", parameters_of(kernel));
}

std::string symbol_probe(std::string_view symbol) {
  return format("kernwright_probe_::kernwright_ask_<{}>", told_variable(symbol));
}

std::string kernel_type_probe(std::string_view kernel) {
  return format("kernwright_probe_::kernwright_ask_<decltype(&{})>", kernel);
}

std::string question_name(std::size_t index) { return format("{}{}", kQuestion, index); }

std::string kernel_question(std::size_t index, std::string_view kernel) {
  return format("__attribute__((global)) void {}({});", question_name(index),
                parameters_of(kernel));
}

std::string symbol_question(std::size_t index, std::string_view symbol) {
  return format("__attribute__((global)) void {}({});", question_name(index),
                told_variable(symbol));
}

std::optional<std::size_t> question_on_line(int line) noexcept {
  if (line < kFirstQuestion) return std::nullopt;
  return static_cast<std::size_t>(line - kFirstQuestion);
}

bool is_probe_answer(std::string_view lowered) noexcept {
  return lowered.starts_with("_ZN17kernwright_probe_15kernwright_ask_") || is_question(lowered);
}

std::optional<ProbedParameter> parameter_of_type(const TypeNode& declared) {
  const auto layout = known_layout(declared);
  if (!layout) return std::nullopt;
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
  parameter.kind = ParameterKind::pointer;
  describe_pointee(pointee, pointee, parameter);
  if (const auto known = known_layout(pointee)) parameter.pointee_size = known->size;
  return result;
}

std::vector<ProbedParameter> read_kernel_probe(std::string_view lowered,
                                               std::span<const std::string> members) {
  std::vector<ProbedParameter> result;
  std::size_t offset = 0;
  for (const TypeRef& node : answered_types(lowered)) {
    if (is_described(*node)) {
      result.push_back(read_parameter(*node, members, lowered));
    } else {
      const auto told = parameter_of_type(*node);
      if (!told || !tells_pointee(*node)) answer_not_understood(lowered);
      result.push_back(*told);
    }
    Parameter& parameter = result.back().parameter;
    if (parameter.size > kMaxParameterBytes) answer_not_understood(lowered);
    const std::size_t alignment = parameter.alignment;
    parameter.offset = (offset + alignment - 1) / alignment * alignment;
    offset = parameter.offset + parameter.size;
  }
  return result;
}

SymbolType read_symbol_probe(std::string_view lowered, std::span<const std::string> members) {
  const std::vector<TypeRef> types = answered_types(lowered);
  if (types.size() != 1 || !is_described(*types[0])) answer_not_understood(lowered);
  const TypeNode& told = *types[0];
  SymbolType result;
  result.type = read_parameter(told, members, lowered).parameter.type;
  const ArrayElement element = array_element(*told.children[1], lowered);
  result.shape = element.shape;
  const ElementType number = element_type(*element.type);
  result.scalar = number.scalar;
  result.lanes = std::max(number.lanes, 1);
  if (element.type->kind == TypeNodeKind::pointer) result.scalar = ScalarType::uint64;
  const std::size_t count = element.count();
  if (!result.scalar && count > 0) {
    const std::size_t bytes = to_size(*told.children[3]->children[0], lowered);
    result.fields = read_members(*told.children[2], bytes / count, members, lowered);
  }
  return result;
}

}  // namespace kernwright
