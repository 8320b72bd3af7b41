// Reads -D options and #define lines.
#include "jit/source/macro_definitions.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/format.h"

namespace kernwright {
namespace {

/// Calls `keep` with each option without a macro, `define` with the text after -D.
template <typename Keep, typename Define>
void sort_extra(const std::vector<std::string>& extra, Keep keep, Define define) {
  constexpr std::array<std::string_view, 2> kJoined{"-D", "--define-macro="};
  for (std::size_t i = 0; i < extra.size(); ++i) {
    const std::string_view option = extra[i];
    const auto* const joined = std::find_if(kJoined.begin(), kJoined.end(),
                                            [&](auto front) { return option.starts_with(front); });
    if (option == "-D" && i + 1 < extra.size()) {
      define(std::string_view(extra[++i]));
    } else if (joined != kJoined.end()) {
      define(option.substr(joined->size()));
    } else {
      keep(extra[i]);
    }
  }
}

/// The name without the parameters and the rest.
std::string leading_identifier(std::string_view text) {
  const auto is_other = [](char c) {
    return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || static_cast<unsigned char>(c) >= 0x80);
  };
  return {text.begin(), std::find_if(text.begin(), text.end(), is_other)};
}

}  // namespace

std::vector<MacroDefinition> macro_definitions(const ProgramOptions& options) {
  std::vector<MacroDefinition> result(options.defines.begin(), options.defines.end());
  const auto add = [&](std::string_view text) {
    const auto equals = text.find('=');
    const bool is_bare = equals == std::string_view::npos;
    result.emplace_back(text.substr(0, equals), is_bare ? "" : text.substr(equals + 1));
  };
  sort_extra(
      options.extra, [](const std::string&) {}, add);
  return result;
}

ProgramOptions without_macros(ProgramOptions options) {
  std::vector<std::string> extra;
  sort_extra(
      options.extra, [&](const std::string& option) { extra.push_back(option); },
      [](std::string_view) {});
  options.extra = std::move(extra);
  options.defines.clear();
  return options;
}

std::string define_lines(const ProgramOptions& options) {
  std::string text;
  for (const auto& [name, value] : macro_definitions(options)) {
    text += format("#define {} {}\n", name, value.empty() ? "1" : value);
  }
  return text;
}

std::set<std::string> macro_names(const ProgramOptions& options, const TokenizedSource& source) {
  constexpr std::string_view kDefine = "define";
  std::set<std::string> names;
  for (const auto& [name, value] : macro_definitions(options)) {
    names.insert(leading_identifier(name));
  }
  for (const Directive& directive : source.directives) {
    std::string_view rest = directive.text;
    const auto word = std::min(rest.find_first_not_of(" \t", 1), rest.size());
    rest.remove_prefix(word);
    if (!rest.starts_with(kDefine)) continue;
    rest.remove_prefix(kDefine.size());
    const auto at = rest.find_first_not_of(" \t");
    if (at != std::string_view::npos && at > 0) names.insert(leading_identifier(rest.substr(at)));
  }
  names.erase(std::string());
  return names;
}

}  // namespace kernwright
