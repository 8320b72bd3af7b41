// The table of C++ spellings and element types.
#include "jit/signature/cuda_types.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace kernwright {
namespace {

struct NamedElement {
  std::string_view name;
  ScalarType scalar;
  int lanes;
};

constexpr std::array kBuiltins{
    NamedElement{"bool", ScalarType::boolean, 0},
    NamedElement{"char", ScalarType::int8, 0},
    NamedElement{"signed char", ScalarType::int8, 0},
    NamedElement{"unsigned char", ScalarType::uint8, 0},
    NamedElement{"char8_t", ScalarType::uint8, 0},
    NamedElement{"short", ScalarType::int16, 0},
    NamedElement{"unsigned short", ScalarType::uint16, 0},
    NamedElement{"char16_t", ScalarType::uint16, 0},
    NamedElement{"int", ScalarType::int32, 0},
    NamedElement{"wchar_t", ScalarType::int32, 0},
    NamedElement{"unsigned int", ScalarType::uint32, 0},
    NamedElement{"char32_t", ScalarType::uint32, 0},
    NamedElement{"long", ScalarType::int64, 0},
    NamedElement{"long long", ScalarType::int64, 0},
    NamedElement{"unsigned long", ScalarType::uint64, 0},
    NamedElement{"unsigned long long", ScalarType::uint64, 0},
    NamedElement{"float", ScalarType::float32, 0},
    NamedElement{"double", ScalarType::float64, 0},
    NamedElement{"long double", ScalarType::float64, 0},
    NamedElement{"_Float16", ScalarType::float16, 0},
    NamedElement{"__bf16", ScalarType::bfloat16, 0},
};

constexpr std::array kClasses{
    NamedElement{"__half", ScalarType::float16, 0},
    NamedElement{"__half2", ScalarType::float16, 2},
    NamedElement{"__nv_bfloat16", ScalarType::bfloat16, 0},
    NamedElement{"__nv_bfloat162", ScalarType::bfloat16, 2},
    NamedElement{"__nv_fp8_e4m3", ScalarType::float8_e4m3fn, 0},
    NamedElement{"__nv_fp8x2_e4m3", ScalarType::float8_e4m3fn, 2},
    NamedElement{"__nv_fp8x4_e4m3", ScalarType::float8_e4m3fn, 4},
    NamedElement{"__nv_fp8_e5m2", ScalarType::float8_e5m2, 0},
    NamedElement{"__nv_fp8x2_e5m2", ScalarType::float8_e5m2, 2},
    NamedElement{"__nv_fp8x4_e5m2", ScalarType::float8_e5m2, 4},
};

/// Other ways to write a built-in type.
constexpr std::array kOtherSpellings{
    NamedElement{"unsigned", ScalarType::uint32, 0},
    NamedElement{"signed", ScalarType::int32, 0},
    NamedElement{"signed int", ScalarType::int32, 0},
    NamedElement{"size_t", ScalarType::uint64, 0},
    NamedElement{"ptrdiff_t", ScalarType::int64, 0},
    NamedElement{"long int", ScalarType::int64, 0},
    NamedElement{"unsigned long int", ScalarType::uint64, 0},
    NamedElement{"long long int", ScalarType::int64, 0},
    NamedElement{"unsigned long long int", ScalarType::uint64, 0},
};

/// CUDA's vector types are a base name and a digit: "uchar4".
constexpr std::array kVectorBases{
    NamedElement{"char", ScalarType::int8, 0},
    NamedElement{"uchar", ScalarType::uint8, 0},
    NamedElement{"short", ScalarType::int16, 0},
    NamedElement{"ushort", ScalarType::uint16, 0},
    NamedElement{"int", ScalarType::int32, 0},
    NamedElement{"uint", ScalarType::uint32, 0},
    NamedElement{"long", ScalarType::int64, 0},
    NamedElement{"ulong", ScalarType::uint64, 0},
    NamedElement{"longlong", ScalarType::int64, 0},
    NamedElement{"ulonglong", ScalarType::uint64, 0},
    NamedElement{"float", ScalarType::float32, 0},
    NamedElement{"double", ScalarType::float64, 0},
};

constexpr std::array<std::string_view, 3> kQualifiers{"const", "volatile", "__grid_constant__"};
/// A pointer's declaration without the type it points to.
constexpr std::array<std::string_view, 6> kNoPartOfType{
    "const", "volatile", "__grid_constant__", "*", "__restrict__", "__restrict"};

/// The words of `spelling` without those in `left_out`, one space between each two.
std::string without_words(std::string_view spelling, std::span<const std::string_view> left_out) {
  std::string words;
  while (!spelling.empty()) {
    const auto end = std::min(spelling.find(' '), spelling.size());
    const std::string_view word = spelling.substr(0, end);
    if (!word.empty() && std::find(left_out.begin(), left_out.end(), word) == left_out.end()) {
      if (!words.empty()) words += ' ';
      words += word;
    }
    spelling.remove_prefix(std::min(end + 1, spelling.size()));
  }
  return words;
}

template <std::size_t N>
const NamedElement* find(const std::array<NamedElement, N>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const NamedElement& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

ElementType vector_type(std::string_view name) {
  for (const std::string_view aligned : {"_16a", "_32a"}) {
    if (name.ends_with(aligned)) name.remove_suffix(aligned.size());
  }
  if (name.size() < 2 || name.back() < '1' || name.back() > '4') return {};
  const NamedElement* base = find(kVectorBases, name.substr(0, name.size() - 1));
  return base == nullptr ? ElementType{} : ElementType{base->scalar, name.back() - '0'};
}

ElementType class_type(const TypeNode& type) {
  const std::string name = spell_name(type.text);
  if (type.has_arguments) {
    const bool is_complex =
        name == "cuda::std::complex" || name == "thrust::complex" || name == "std::complex";
    if (!is_complex || type.children.empty()) return {};
    const ElementType part = element_type(*type.children[0]);
    if (part.scalar == ScalarType::float32) return {ScalarType::complex64, 0};
    if (part.scalar == ScalarType::float64) return {ScalarType::complex128, 0};
    return {};
  }
  if (const NamedElement* row = find(kClasses, name)) return {row->scalar, row->lanes};
  return vector_type(name);
}

}  // namespace

const TypeNode& unqualified(const TypeNode& type) {
  const TypeNode* inner = &type;
  while (inner->kind == TypeNodeKind::qualified) inner = inner->children[0].get();
  return *inner;
}

ElementType element_type(const TypeNode& type) {
  const TypeNode& inner = unqualified(type);
  if (inner.kind == TypeNodeKind::builtin) {
    const NamedElement* row = find(kBuiltins, inner.text);
    return row == nullptr ? ElementType{} : ElementType{row->scalar, 0};
  }
  return inner.kind == TypeNodeKind::named ? class_type(inner) : ElementType{};
}

std::optional<TypeLayout> known_layout(const TypeNode& type) {
  const TypeNode& inner = unqualified(type);
  if (inner.kind == TypeNodeKind::pointer) return TypeLayout{sizeof(void*), alignof(void*)};
  ElementType element;
  if (inner.kind == TypeNodeKind::builtin && inner.text != "long double") {
    element = element_type(inner);
  } else if (inner.kind == TypeNodeKind::named && !inner.has_arguments &&
             inner.text.find('_') == std::string::npos) {  // not double4_16a
    element = vector_type(inner.text);
  }
  if (!element.scalar) return std::nullopt;
  const std::size_t each = scalar_size(*element.scalar);
  const std::size_t size = each * static_cast<std::size_t>(std::max(element.lanes, 1));
  if (element.lanes == 3) return TypeLayout{size, each};
  // The alignment of the widest differs from release to release.
  return size > 16 ? std::nullopt : std::optional(TypeLayout{size, size});
}

bool spells_known_layout(std::string_view spelling) {
  const std::string words = without_words(spelling, kNoPartOfType);
  return words == "void" || find(kBuiltins, words) != nullptr ||
         find(kOtherSpellings, words) != nullptr || vector_type(words).scalar.has_value();
}

ElementType element_from_spelling(std::string_view spelling) {
  const std::string words = without_words(spelling, kQualifiers);
  const NamedElement* row = find(kBuiltins, words);
  if (row == nullptr) row = find(kOtherSpellings, words);
  if (row == nullptr) row = find(kClasses, words);
  return row == nullptr ? vector_type(words) : ElementType{row->scalar, row->lanes};
}

bool spells_char(std::string_view spelling) {
  const std::string words = without_words(spelling, kQualifiers);
  return words == "char" || words == "signed char" || words == "unsigned char";
}

}  // namespace kernwright
