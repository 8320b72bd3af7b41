// Finds the parameter lists and bodies of kernels and inserts words there, all on the same lines.
#include "jit/slice/slice_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/format.h"
#include "base/printable.h"
#include "jit/slice/slice_header.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

constexpr std::string_view kFrame = "const uint3 kernwright_first, const uint3 kernwright_grid";
constexpr std::string_view kYieldWords = ", unsigned* kernwright_order, unsigned* kernwright_next";

/// A change of a text: `removed` bytes at `offset` make way for `added`.
struct TextEdit {
  std::size_t offset = 0, removed = 0;
  std::string added;
};

/// Looks for kernels in one run of tokens: a text without its directives, or a macro's body.
class KernelFinder {
 public:
  KernelFinder(std::string_view text, const std::vector<Token>& tokens, std::string parameters,
               std::vector<TextEdit>& edits)
      : text_(text), tokens_(tokens), parameters_(std::move(parameters)), edits_(edits) {}

  /// Whether each of the words in `marks` began a kernel whose parameters are in these tokens.
  bool find(const std::set<std::string, std::less<>>& marks) {
    bool all = true;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const bool is_mark =
          tokens_[i].kind == TokenKind::identifier && marks.contains(tokens_[i].text);
      if (is_mark && !kernel(i + 1)) all = false;
    }
    return all;
  }

 private:
  bool is(std::size_t index, std::string_view text) const {
    return index < tokens_.size() && tokens_[index].kind != TokenKind::string &&
           tokens_[index].text == text;
  }
  bool is_word(std::size_t index) const {
    return index < tokens_.size() && tokens_[index].kind == TokenKind::identifier;
  }
  std::size_t offset(std::size_t index) const {
    return static_cast<std::size_t>(tokens_[index].text.data() - text_.data());
  }

  std::size_t behind_bracket(std::size_t index) const {
    return kernwright::behind_bracket(tokens_, index);
  }
  std::size_t behind_angle(std::size_t index) const {
    return kernwright::behind_angle(tokens_, index);
  }

  /// From behind __global__ to the parameters and the body.
  bool kernel(std::size_t at) {
    std::string_view name;
    for (; at < tokens_.size(); ++at) {
      if (is(at, ";") || is(at, "{") || is(at, "}") || is(at, "=")) return true;  // no declaration
      if (is(at, "[")) {
        at = behind_bracket(at) - 1;
      } else if (is_word(at)) {
        name = tokens_[at].text;
        if (is(at + 1, "<")) at = behind_angle(at + 1) - 1;
      } else if (is(at, "(")) {
        const std::size_t end = behind_bracket(at);
        if (is(end, "(") && !is_declaration_specifier_call(name))
          return change(end);  // NAME(add)(...)
        const bool last_word = is(end + 1, "{") || is(end + 1, ";");
        const bool macro = is(end, "::") || (is_word(end) && !last_word &&
                                             !is_declaration_specifier_call(tokens_[end].text));
        if (!name.empty() && !is_declaration_specifier_call(name) && !macro) return change(at);
        at = end - 1;
      }
    }
    return false;
  }

  /// `open` is the parenthesis in front of the parameters.
  bool change(std::size_t open) {
    const std::size_t end = behind_bracket(open);
    if (end < open + 2 || !is(end - 1, ")")) return false;
    const bool none = end == open + 2, is_void = end == open + 3 && is(open + 1, "void");
    edits_.push_back({offset(open) + 1, 0, parameters_ + (none || is_void ? "" : ", ")});
    if (is_void) edits_.push_back({offset(open + 1), 4, ""});
    for (std::size_t at = end; at < tokens_.size() && !is(at, ";"); ++at) {
      if (is(at, "(") || is(at, "[")) {
        at = behind_bracket(at) - 1;
      } else if (is(at, "{")) {
        edits_.push_back({offset(at) + 1, 0, format(" {} ", kSliceBegin)});
        break;
      }
    }
    return true;
  }

  std::string_view text_;
  const std::vector<Token>& tokens_;
  const std::string parameters_;
  std::vector<TextEdit>& edits_;
};

/// `#define NAME body`, the body as a part of the text.
struct Macro {
  std::string_view name, body;
};

std::string_view from_word(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\\\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::vector<Macro> macros_of(std::string_view text, const TokenizedSource& source) {
  std::vector<Macro> macros;
  for (const Directive& directive : source.directives) {
    std::string_view line = text.substr(directive.begin, directive.end - directive.begin);
    line = from_word(line.substr(std::min(line.find_first_not_of("#%:"), line.size())));
    if (!line.starts_with("define")) continue;
    line = from_word(line.substr(6));
    const auto name_end = std::find_if(line.begin(), line.end(), [](char c) {
      return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_');
    });
    const auto length = static_cast<std::size_t>(name_end - line.begin());
    std::string_view body = line.substr(length);
    if (body.starts_with('(')) body = body.substr(std::min(body.find(')'), body.size() - 1) + 1);
    macros.push_back({line.substr(0, length), body});
  }
  return macros;
}

std::string edited(const std::string& text, std::vector<TextEdit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const TextEdit& a, const TextEdit& b) { return a.offset < b.offset; });
  std::string result;
  std::size_t from = 0;
  for (const TextEdit& edit : edits) {
    result.append(text, from, edit.offset - from);
    result += edit.added;
    from = edit.offset + edit.removed;
  }
  return result.append(text, from);
}

/// The first word that reads the index or the grid in a way that cannot be redirected.
std::string_view refused_word(const TokenizedSource& source) {
  constexpr std::array<std::string_view, 6> kAssembler{"%ctaid",     "%nctaid",     "%gridid",
                                                       "%clusterid", "%nclusterid", "%is_explicit"};
  for (const Token& token : source.tokens) {
    if (token.kind == TokenKind::string) {
      for (const std::string_view word : kAssembler) {
        if (token.text.find(word) != std::string_view::npos) return word;
      }
    } else if (token.kind == TokenKind::identifier) {
      const bool reads = token.text.ends_with("sreg_ctaid") || token.text == "__clusterIdx" ||
                         token.text.find("sreg_ctaid_") != std::string_view::npos ||
                         token.text.find("sreg_nctaid") != std::string_view::npos ||
                         token.text == "__clusterGridDimInClusters";
      if (reads) return token.text;
    }
  }
  return {};
}

std::string slice_one(const std::string& text, const std::string& name, SliceForm form) {
  const TokenizedSource source = tokenize(text);
  if (const std::string_view word = refused_word(source); !word.empty()) {
    throw NotSliceable(
        format("{} reads {}, which a slice cannot redirect: read blockIdx and gridDim instead",
               printable(name), word));
  }
  std::vector<TextEdit> edits;
  const std::string parameters = std::string(kFrame) + std::string(form.yields ? kYieldWords : "");
  std::set<std::string, std::less<>> marks{"__global__"};
  for (const Macro& macro : macros_of(text, source)) {
    const TokenizedSource body = tokenize(macro.body);
    // A macro that ends in front of the parameters marks kernels as __global__ does.
    if (!KernelFinder(text, body.tokens, parameters, edits).find(marks)) {
      marks.emplace(macro.name);
    }
  }
  KernelFinder(text, source.tokens, parameters, edits).find(marks);
  return edited(text, std::move(edits));
}

}  // namespace

SlicedText slice_text(const Source& source, const ProgramOptions& options, SliceForm form) {
  SlicedText result{source, options};
  result.source.text = format("#include <{}>\n#line 1\n{}", kSliceHeaderName,
                              slice_one(source.text, source.name, form));
  for (auto& [name, text] : result.options.headers) text = slice_one(text, name, form);
  result.options.headers[std::string(kSliceHeaderName)] = kSliceHeader;
  if (form.yields) result.options.defines[std::string(kSliceYields)] = "";
  result.asks_in_loop = form.yields && source.text.find(kYieldWordsName) != std::string::npos;
  if (result.asks_in_loop) result.options.defines[std::string(kSliceLoop)] = "";
  if (form.in_shared) result.options.defines[std::string(kSliceShared)] = "";
  return result;
}

}  // namespace kernwright
