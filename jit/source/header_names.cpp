// Follows include names from folder to folder.
#include "jit/source/header_names.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace kernwright {

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
  const std::string name(include.name);
  return headers.contains(name) ? name : known(name);
}

std::string with_includes_renamed(std::string_view text, const Renaming& rename) {
  if (text.find("include") == std::string_view::npos) return std::string(text);
  const TokenizedSource tokens = tokenize(text);
  std::vector<IncludeDirective> named = tokens.includes;
  for (const std::string_view probed : tokens.probed) {
    const bool quoted = probed.data() > text.data() && probed.data()[-1] == '"';
    named.push_back({probed, quoted, 0});
  }
  std::sort(named.begin(), named.end(),
            [](const auto& a, const auto& b) { return a.name.data() < b.name.data(); });
  std::string result;
  std::size_t copied = 0;
  for (const IncludeDirective& include : named) {
    const std::string name = rename(include);
    if (name.empty() || name == include.name) continue;
    const auto begin = static_cast<std::size_t>(include.name.data() - text.data());
    result += text.substr(copied, begin - copied);
    result += name;
    copied = begin + include.name.size();
  }
  result += text.substr(copied);
  return result;
}

}  // namespace kernwright
