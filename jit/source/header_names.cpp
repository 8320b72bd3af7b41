// Follows include names from folder to folder.
#include "jit/source/header_names.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace kernwright {
namespace {

/// Whether the directive names headers: #include, #embed, #if with __has_include.
bool names_headers(std::string_view directive) {
  const auto at = directive.find_first_not_of(" \t\f\v", 1);
  const std::string_view word = directive.substr(std::min(at, directive.size()));
  return word.starts_with("include") || word.starts_with("embed") ||
         ((word.starts_with("if") || word.starts_with("elif")) &&
          word.find("__has_") != std::string_view::npos);
}

/// Whether a '<' behind this opens a name and compares nothing.
bool opens_name(std::string_view before) {
  const auto end = before.find_last_not_of(" \t\f\v");
  const std::string_view words = before.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return words.ends_with('(') || words.ends_with("include") || words.ends_with("include_next") ||
         words.ends_with("embed");
}

std::string renamed(const Directive& directive, const Renaming& rename) {
  const std::string_view text = directive.text;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto open = text.find_first_of("\"<", at);
    const bool is_quoted = open != std::string_view::npos && text[open] == '"';
    const auto close =
        open == std::string_view::npos ? open : text.find(is_quoted ? '"' : '>', open + 1);
    if (close == std::string_view::npos) return result.append(text.substr(at));
    if (!is_quoted && !opens_name(text.substr(0, open))) {
      result.append(text.substr(at, open + 1 - at));
      at = open + 1;
      continue;
    }
    const std::string name(text.substr(open + 1, close - open - 1));
    const std::string spelling = rename({name, is_quoted, directive.line});
    result.append(text.substr(at, open - at));
    result.append(spelling.empty() ? text.substr(open, close + 1 - open) : spelling);
    at = close + 1;
  }
  return result;
}

}  // namespace

std::string header_meant(const std::map<std::string, std::string>& headers,
                         std::string_view includer, const IncludeDirective& include) {
  namespace fs = std::filesystem;
  const auto known = [&](const fs::path& path) {
    const std::string name = path.lexically_normal().string();
    return headers.contains(name) ? name : std::string();
  };
  if (include.quoted) {
    const fs::path folder = fs::path(includer).parent_path();
    if (std::string name = known(folder / include.name); !name.empty()) return name;
  }
  return headers.contains(include.name) ? include.name : known(include.name);
}

std::string plain_name(const std::string& name) {
  const std::string normal = std::filesystem::path(name).lexically_normal().string();
  const bool is_below = normal != "." && !normal.starts_with("..") && !normal.starts_with('/');
  return is_below ? normal : name;
}

std::string with_includes_renamed(std::string text, const Renaming& rename) {
  if (text.find("include") == std::string::npos && text.find("embed") == std::string::npos) {
    return text;
  }
  const std::vector<Directive> directives = tokenize(text).directives;
  // From the last to the first, so that earlier positions stay valid.
  for (auto it = directives.rbegin(); it != directives.rend(); ++it) {
    if (!names_headers(it->text)) continue;
    std::string line = renamed(*it, rename);
    if (line == it->text) continue;
    const std::string_view old = std::string_view(text).substr(it->begin, it->end - it->begin);
    line.append(static_cast<std::size_t>(std::count(old.begin(), old.end(), '\n')), '\n');
    text.replace(it->begin, it->end - it->begin, line);
  }
  return text;
}

}  // namespace kernwright
