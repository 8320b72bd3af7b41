// A bounded reader of Itanium mangled names: types, nested names, template arguments,
// substitutions.
#include "jit/signature/mangled_type.h"

#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "base/format.h"

namespace kernwright {
namespace {

constexpr int kMaxDepth = 1000;
constexpr std::size_t kMaxNodes = 65536;
constexpr std::size_t kMaxMangled = std::size_t{1} << 20;

const char* builtin_spelling(char code) {
  switch (code) {
    case 'v':
      return "void";
    case 'w':
      return "wchar_t";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'a':
      return "signed char";
    case 'h':
      return "unsigned char";
    case 's':
      return "short";
    case 't':
      return "unsigned short";
    case 'i':
      return "int";
    case 'j':
      return "unsigned int";
    case 'l':
      return "long";
    case 'm':
      return "unsigned long";
    case 'x':
      return "long long";
    case 'y':
      return "unsigned long long";
    case 'n':
      return "__int128";
    case 'o':
      return "unsigned __int128";
    case 'f':
      return "float";
    case 'd':
      return "double";
    case 'e':
      return "long double";
    case 'g':
      return "__float128";
    case 'z':
      return "...";
    default:
      return nullptr;
  }
}

const char* extended_builtin_spelling(char code) {
  switch (code) {
    case 'n':
      return "decltype(nullptr)";
    case 's':
      return "char16_t";
    case 'i':
      return "char32_t";
    case 'u':
      return "char8_t";
    case 'h':
      return "_Float16";
    default:
      return nullptr;
  }
}

TypeRef make(TypeNode node) { return std::make_shared<const TypeNode>(std::move(node)); }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  TypeRef read_name() {
    if (text_.size() > kMaxMangled) fail("is longer than 1 MiB");
    if (!take("_Z")) fail("does not begin with _Z");
    return name();
  }

  FunctionNode read_function() {
    FunctionNode function{read_name(), {}};
    // Unlike a type's name, a function's name is no candidate for a later substitution.
    if (!substitutions_.empty() && substitutions_.back() == function.name) {
      substitutions_.pop_back();
    }
    if (function.name->has_arguments) {
      arguments_ = function.name->children;
      type();  // the result, which only templates spell
    }
    if (at_ == text_.size()) fail("spells no parameters");
    while (at_ < text_.size()) add_parameter(type(), function.parameters);
    if (function.parameters.size() == 1 && function.parameters[0]->text == "void") {
      function.parameters.clear();
    }
    return function;
  }

 private:
  struct DepthGuard {
    explicit DepthGuard(Reader& r) : reader(r) {
      if (++reader.depth_ > kMaxDepth) reader.fail("is nested too deeply");
    }
    ~DepthGuard() { --reader.depth_; }
    DepthGuard(const DepthGuard&) = delete;
    DepthGuard& operator=(const DepthGuard&) = delete;
    Reader& reader;
  };

  [[noreturn]] void fail(const char* why) const {
    throw InvalidArgument(
        format("the mangled name {} at offset {} of {}", why, at_, text_.substr(0, 200)));
  }

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  void expect(char c) {
    if (peek() != c) fail("is not understood");
    ++at_;
  }

  TypeRef node(TypeNode value) {
    if (++nodes_ > kMaxNodes) fail("has too many parts");
    return make(std::move(value));
  }
  TypeRef remember(TypeRef type) {
    substitutions_.push_back(type);
    return type;
  }

  std::size_t number() {
    std::size_t value = 0;
    if (!std::isdigit(static_cast<unsigned char>(peek()))) fail("lacks a number");
    while (std::isdigit(static_cast<unsigned char>(peek()))) {
      value = value * 10 + static_cast<std::size_t>(peek() - '0');
      if (value > kMaxMangled) fail("has too large a number");
      ++at_;
    }
    return value;
  }

  std::string source_name() {
    const auto length = number();
    if (length == 0 || length > text_.size() - at_) fail("is cut short");
    std::string result(text_.substr(at_, length));
    at_ += length;
    while (peek() == 'B') {  // ABI tags say nothing to a reader
      ++at_;
      at_ += std::min(number(), text_.size() - at_);
    }
    if (result.starts_with("_GLOBAL__N_")) return "(anonymous namespace)";
    // Static entities, and types without a name, lie in a namespace named after the file.
    if (result.starts_with("_INTERNAL_00000000_")) return {};
    return result;
  }

  std::string unqualified_name() {
    if (peek() == 'L') ++at_;  // internal linkage
    if (take("Ut")) return skip_to_underscore("(unnamed)");
    if (take("Ul")) {
      while (peek() != 'E' && peek() != '\0') type();
      expect('E');
      return skip_to_underscore("(lambda)");
    }
    return source_name();
  }

  std::string skip_to_underscore(const char* result) {
    while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    expect('_');
    return result;
  }

  /// S_, S0_, ..., or one of the abbreviations of std.
  TypeRef substitution() {
    expect('S');
    if (const char* abbreviated = standard_abbreviation()) {
      return node({.kind = TypeNodeKind::named, .text = abbreviated});
    }
    std::size_t index = 0;
    if (peek() != '_') {
      for (; peek() != '_'; ++at_) {
        const char c = peek();
        const bool digit = c >= '0' && c <= '9';
        if (!digit && !(c >= 'A' && c <= 'Z')) fail("has a bad substitution");
        index = index * 36 + static_cast<std::size_t>(digit ? c - '0' : c - 'A' + 10);
        if (index > kMaxNodes) fail("has a bad substitution");
      }
      ++index;
    }
    expect('_');
    if (index >= substitutions_.size()) fail("has a bad substitution");
    return substitutions_[index];
  }

  const char* standard_abbreviation() {
    static constexpr std::array<std::pair<char, const char*>, 7> kNames{{{'t', "std"},
                                                                         {'a', "std::allocator"},
                                                                         {'b', "std::basic_string"},
                                                                         {'s', "std::string"},
                                                                         {'i', "std::istream"},
                                                                         {'o', "std::ostream"},
                                                                         {'d', "std::iostream"}}};
    for (const auto& [code, spelling] : kNames) {
      if (peek() == code) {
        ++at_;
        return spelling;
      }
    }
    return nullptr;
  }

  /// <name>: nested, local, or unscoped with an optional argument list.
  TypeRef name() {
    const DepthGuard guard(*this);
    if (peek() == 'N') return nested_name();
    if (peek() == 'Z') return local_name();
    TypeRef result;
    if (peek() == 'S' && peek(1) != 't') {
      result = substitution();
    } else {
      const bool in_std = take("St");
      result = remember(node(
          {.kind = TypeNodeKind::named, .text = (in_std ? "std::" : "") + unqualified_name()}));
    }
    return peek() == 'I' ? remember(with_arguments(result)) : result;
  }

  /// N [cv] [ref] <prefix...> E
  TypeRef nested_name() {
    expect('N');
    while (peek() == 'r' || peek() == 'V' || peek() == 'K') ++at_;
    if (peek() == 'R' || peek() == 'O') ++at_;
    TypeRef scope;
    while (peek() != 'E') {
      if (peek() == 'S') {
        if (scope) fail("is not understood");
        scope = substitution();
      } else if (peek() == 'I') {
        if (!scope) fail("is not understood");
        scope = remember(with_arguments(scope));
      } else {
        std::string prefix = scope ? spell(*scope) : std::string();
        if (!prefix.empty()) prefix += "::";
        scope = remember(node({.kind = TypeNodeKind::named, .text = prefix + unqualified_name()}));
      }
    }
    expect('E');
    if (!scope) fail("is not understood");
    return scope;
  }

  /// Z <function encoding> E <name>: a type inside a function body.
  TypeRef local_name() {
    expect('Z');
    TypeRef function = name();
    while (peek() != 'E' && peek() != '\0') type();
    expect('E');
    if (peek() == '_') skip_discriminator();
    const TypeRef inner = name();
    return node({.kind = TypeNodeKind::named,
                 .text = spell(*function) + "::" + inner->text,
                 .children = inner->children,
                 .has_arguments = inner->has_arguments});
  }

  void skip_discriminator() {
    while (peek() == '_') ++at_;
    while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    if (peek() == '_') ++at_;
  }

  TypeRef with_arguments(const TypeRef& base) {
    TypeNode result{.kind = TypeNodeKind::named, .text = base->text, .has_arguments = true};
    if (base->has_arguments) fail("is not understood");
    expect('I');
    while (peek() != 'E') result.children.push_back(argument());
    expect('E');
    return node(std::move(result));
  }

  TypeRef argument() {
    const DepthGuard guard(*this);
    if (peek() == 'L') return literal();
    if (peek() != 'J' && peek() != 'I') return type();
    ++at_;
    TypeNode pack{.kind = TypeNodeKind::pack};
    while (peek() != 'E') pack.children.push_back(argument());
    expect('E');
    return node(std::move(pack));
  }

  /// L <type> <value> E, or L _Z <encoding> E for the address of something.
  TypeRef literal() {
    expect('L');
    if (take("_Z")) {
      const TypeRef object = name();
      while (peek() != 'E' && peek() != '\0') type();
      expect('E');
      return node({.kind = TypeNodeKind::integer, .text = "&" + spell(*object)});
    }
    const TypeRef kind = type();
    std::string value = take("n") ? "-" : "";
    while (std::isalnum(static_cast<unsigned char>(peek())) && peek() != 'E') value += text_[at_++];
    expect('E');
    if (kind->text == "bool") value = value == "0" ? "false" : "true";
    return node({.kind = TypeNodeKind::integer, .text = std::move(value), .children = {kind}});
  }

  TypeRef type() {
    const DepthGuard guard(*this);
    if (const char* spelling = builtin_spelling(peek())) {
      ++at_;
      return node({.kind = TypeNodeKind::builtin, .text = spelling});
    }
    switch (peek()) {
      case 'r':
      case 'V':
      case 'K':
        return qualified();
      case 'P':
        return wrap(TypeNodeKind::pointer);
      case 'R':
        return wrap(TypeNodeKind::lvalue_reference);
      case 'O':
        return wrap(TypeNodeKind::rvalue_reference);
      case 'A':
        return array();
      case 'F':
        return function();
      case 'M':
        return member_pointer();
      case 'D':
        return extended();
      case 'S':
        if (peek(1) != 't') return substituted_type();
        return name();
      case 'u':
        ++at_;
        return remember(node({.kind = TypeNodeKind::builtin, .text = source_name()}));
      case 'T':
        return template_parameter();
      case 'N':
      case 'Z':
        return name();
      default:
        break;
    }
    const bool unnamed = peek() == 'U' && (peek(1) == 't' || peek(1) == 'l');
    if (unnamed || std::isdigit(static_cast<unsigned char>(peek()))) return name();
    fail("uses a form that is not supported");
  }

  /// A pack stands for its elements.
  void add_parameter(const TypeRef& parameter, std::vector<TypeRef>& parameters) {
    if (parameter->kind != TypeNodeKind::pack) return parameters.push_back(parameter);
    for (const TypeRef& element : parameter->children) add_parameter(element, parameters);
    if (parameters.size() > kMaxNodes) fail("has too many parts");
  }

  /// T_, T0_, ...: an argument of the function's own name.
  TypeRef template_parameter() {
    expect('T');
    const std::size_t index = peek() == '_' ? 0 : number() + 1;
    expect('_');
    if (index >= arguments_.size()) fail("has a bad template parameter");
    return remember(arguments_[index]);
  }

  TypeRef substituted_type() {
    const TypeRef base = substitution();
    return peek() == 'I' ? remember(with_arguments(base)) : base;
  }

  TypeRef wrap(TypeNodeKind kind) {
    ++at_;
    TypeRef inner = type();
    if (inner->kind == TypeNodeKind::pack) fail("uses a form that is not supported");
    return remember(node({.kind = kind, .children = {std::move(inner)}}));
  }

  TypeRef qualified() {
    TypeNode result{.kind = TypeNodeKind::qualified};
    if (peek() == 'r') ++at_;  // restrict: no part of the spelling
    if (peek() == 'V') {
      ++at_;
      result.is_volatile = true;
    }
    if (peek() == 'K') {
      ++at_;
      result.is_const = true;
    }
    result.children.push_back(type());
    if (result.children[0]->kind == TypeNodeKind::pack) fail("uses a form that is not supported");
    return remember(node(std::move(result)));
  }

  TypeRef array() {
    expect('A');
    std::string extent;
    while (std::isdigit(static_cast<unsigned char>(peek()))) extent += text_[at_++];
    expect('_');
    return remember(
        node({.kind = TypeNodeKind::array, .text = std::move(extent), .children = {type()}}));
  }

  TypeRef function() {
    expect('F');
    if (peek() == 'Y') ++at_;
    TypeNode result{.kind = TypeNodeKind::function};
    while (peek() != 'E') {
      if ((peek() == 'R' || peek() == 'O') && peek(1) == 'E') {
        ++at_;
        continue;
      }
      result.children.push_back(type());
    }
    expect('E');
    if (result.children.empty()) fail("is not understood");
    if (result.children.size() == 2 && result.children[1]->text == "void") {
      result.children.pop_back();
    }
    return remember(node(std::move(result)));
  }

  TypeRef member_pointer() {
    expect('M');
    const TypeRef owner = type();
    return remember(node({.kind = TypeNodeKind::member_pointer, .children = {owner, type()}}));
  }

  TypeRef extended() {
    expect('D');
    if (peek() == 'o') {  // noexcept function
      ++at_;
      return type();
    }
    if (peek() == 'p') {  // a pack of types
      ++at_;
      const TypeRef pack = type();
      if (pack->kind != TypeNodeKind::pack) fail("is not understood");
      return remember(pack);
    }
    if (take("F16b")) return node({.kind = TypeNodeKind::builtin, .text = "__bf16"});
    if (peek() == 'F') {
      ++at_;
      std::string bits = std::to_string(number());
      expect('_');
      return node({.kind = TypeNodeKind::builtin, .text = "_Float" + bits});
    }
    const char* spelling = extended_builtin_spelling(peek());
    if (spelling == nullptr) fail("uses a form that is not supported");
    ++at_;
    return node({.kind = TypeNodeKind::builtin, .text = spelling});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::size_t nodes_ = 0;
  std::vector<TypeRef> substitutions_;
  std::vector<TypeRef> arguments_;  ///< of the function's name
};

}  // namespace

TypeRef demangle_name(std::string_view mangled) { return Reader(mangled).read_name(); }

FunctionNode demangle_function(std::string_view mangled) { return Reader(mangled).read_function(); }

}  // namespace kernwright
