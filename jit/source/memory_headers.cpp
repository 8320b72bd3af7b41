// Rewrites the directives of headers in memory.
#include "jit/source/memory_headers.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

/// Whether the directive names headers in quotes: #include, #embed, #if with __has_include.
bool names_headers(std::string_view directive) {
  const auto at = directive.find_first_not_of(" \t\f\v", 1);
  const std::string_view word = directive.substr(std::min(at, directive.size()));
  return word.starts_with("include") || word.starts_with("embed") ||
         ((word.starts_with("if") || word.starts_with("elif")) &&
          word.find("__has_") != std::string_view::npos);
}

class Rewriter {
 public:
  Rewriter(const MemoryHeaders& headers, const std::string& own_name)
      : headers_(headers), folder_(std::filesystem::path(own_name).parent_path()) {}

  std::string rewrite(std::string text) const {
    const std::vector<Directive> directives = tokenize(text).directives;
    // From the last to the first: places in front stay what they are.
    for (auto it = directives.rbegin(); it != directives.rend(); ++it) {
      if (!names_headers(it->text)) continue;
      std::string line = in_brackets(it->text);
      if (line == it->text) continue;
      const std::string_view old = std::string_view(text).substr(it->begin, it->end - it->begin);
      line.append(static_cast<std::size_t>(std::count(old.begin(), old.end(), '\n')), '\n');
      text.replace(it->begin, it->end - it->begin, line);
    }
    return text;
  }

 private:
  std::string in_brackets(std::string_view directive) const {
    std::string result;
    for (std::size_t at = 0; at < directive.size();) {
      const auto open = directive.find('"', at);
      const auto close = open == std::string_view::npos ? open : directive.find('"', open + 1);
      if (close == std::string_view::npos) return result.append(directive.substr(at));
      const std::string name(directive.substr(open + 1, close - open - 1));
      result.append(directive.substr(at, open - at));
      const std::string joined = (folder_ / name).lexically_normal().string();
      const std::string& known = headers_.contains(joined) ? joined : name;
      const bool can_be_bracketed = known.find('>') == std::string::npos;
      result += can_be_bracketed ? "<" + known + ">" : "\"" + known + "\"";
      at = close + 1;
    }
    return result;
  }

  const MemoryHeaders& headers_;
  std::filesystem::path folder_;
};

}  // namespace

MemoryHeaders without_current_folder(MemoryHeaders headers) {
  MemoryHeaders result;
  for (const auto& [name, text] : headers) {
    result.emplace(
        name, text.find('"') == std::string::npos ? text : Rewriter(headers, name).rewrite(text));
  }
  return result;
}

}  // namespace kernwright
