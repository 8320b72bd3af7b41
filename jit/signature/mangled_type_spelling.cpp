// Writes a type tree as C++.
#include "base/errors.h"
#include "jit/signature/mangled_type.h"

namespace kernwright {
namespace {

constexpr std::size_t kMaxSpelling = std::size_t{64} << 10;
constexpr int kMaxSpellingDepth = 400;

class Speller {
 public:
  /// The type around `declarator`: spell(pointer to int, "x") is "int* x".
  std::string write(const TypeNode& type, std::string declarator) {
    if (++depth_ > kMaxSpellingDepth || declarator.size() > kMaxSpelling) too_long();
    std::string result = dispatch(type, std::move(declarator));
    --depth_;
    if (result.size() > kMaxSpelling || (written_ += result.size()) > 64 * kMaxSpelling) too_long();
    return result;
  }

 private:
  [[noreturn]] static void too_long() {
    throw InvalidArgument("the spelling of a type is too long or too deep");
  }

  static std::string join(std::string left, const std::string& declarator) {
    if (declarator.empty()) return left;
    const char c = declarator.front();
    return left + (c == '*' || c == '&' ? "" : " ") + declarator;
  }

  static std::string cv(const TypeNode& type) {
    std::string result = type.is_const ? "const" : "";
    if (type.is_volatile) result += result.empty() ? "volatile" : " volatile";
    return result;
  }

  static bool binds_tighter(const TypeNode& pointee) {
    const TypeNode* inner = &pointee;
    while (inner->kind == TypeNodeKind::qualified) inner = inner->children[0].get();
    return inner->kind == TypeNodeKind::array || inner->kind == TypeNodeKind::function;
  }

  std::string dispatch(const TypeNode& type, std::string declarator) {
    switch (type.kind) {
      case TypeNodeKind::builtin:
        return join(type.text, declarator);
      case TypeNodeKind::named:
        return join(named(type), declarator);
      case TypeNodeKind::qualified:
        return qualified(type, std::move(declarator));
      case TypeNodeKind::pointer:
        return pointer(type, "*", std::move(declarator));
      case TypeNodeKind::lvalue_reference:
        return pointer(type, "&", std::move(declarator));
      case TypeNodeKind::rvalue_reference:
        return pointer(type, "&&", std::move(declarator));
      case TypeNodeKind::array:
        return write(*type.children[0], declarator + "[" + type.text + "]");
      case TypeNodeKind::function:
        return write(*type.children[0], declarator + "(" + list(type, 1) + ")");
      case TypeNodeKind::member_pointer:
        return member_pointer(type, declarator);
      case TypeNodeKind::integer:
        return integer(type);
      case TypeNodeKind::pack:
        return list(type, 0);
    }
    return {};
  }

  std::string qualified(const TypeNode& type, std::string declarator) {
    const TypeNode& inner = *type.children[0];
    const std::string words = cv(type);
    if (words.empty()) return write(inner, std::move(declarator));
    // The words of a pointer stand behind its star, those of anything else in front.
    if (inner.kind == TypeNodeKind::pointer || inner.kind == TypeNodeKind::member_pointer) {
      return write(inner, join(words, declarator));
    }
    return words + " " + write(inner, std::move(declarator));
  }

  std::string pointer(const TypeNode& type, const char* mark, std::string declarator) {
    const TypeNode& pointee = *type.children[0];
    const bool word = !declarator.empty() && declarator.front() != '*' &&
                      declarator.front() != '&' && declarator.front() != '(' &&
                      declarator.front() != '[';
    std::string inner = mark + std::string(word ? " " : "") + declarator;
    if (binds_tighter(pointee)) inner = "(" + inner + ")";
    return write(pointee, std::move(inner));
  }

  std::string member_pointer(const TypeNode& type, const std::string& declarator) {
    std::string inner = write(*type.children[0], "") + "::*" + declarator;
    if (binds_tighter(*type.children[1])) inner = "(" + inner + ")";
    return write(*type.children[1], std::move(inner));
  }

  std::string integer(const TypeNode& type) {
    if (type.children.empty() || type.children[0]->kind == TypeNodeKind::builtin) return type.text;
    return "(" + write(*type.children[0], "") + ")" + type.text;
  }

  std::string named(const TypeNode& type) {
    std::string result = spell_name(type.text);
    return type.has_arguments ? result + "<" + list(type, 0) + ">" : result;
  }

  std::string list(const TypeNode& type, std::size_t first) {
    std::string result;
    for (std::size_t i = first; i < type.children.size(); ++i) {
      const std::string item = write(*type.children[i], "");
      if (item.empty()) continue;  // an empty pack
      if (!result.empty()) result += ", ";
      result += item;
    }
    return result;
  }

  int depth_ = 0;
  std::size_t written_ = 0;
};

/// Inline namespaces for versions of NVIDIA's C++ library: "__4", "_V_300100_SM_80".
bool is_version_namespace(std::string_view part) {
  if (part.starts_with("_V_")) return true;
  return part.size() > 2 && part.starts_with("__") &&
         part.find_first_not_of("0123456789", 2) == std::string_view::npos;
}

}  // namespace

std::string spell(const TypeNode& type) { return Speller().write(type, ""); }

std::string spell_name(std::string_view qualified_name) {
  std::string result;
  while (!qualified_name.empty()) {
    const auto end = qualified_name.find("::");
    const auto part = qualified_name.substr(0, end);
    if (!is_version_namespace(part)) {
      if (!result.empty()) result += "::";
      result += part;
    }
    if (end == std::string_view::npos) break;
    qualified_name.remove_prefix(end + 2);
  }
  return result;
}

}  // namespace kernwright
