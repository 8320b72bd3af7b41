// Rewrites the directives of headers in memory.
#include "jit/source/memory_headers.h"

#include "jit/source/header_names.h"

namespace kernwright {

std::string bracketed(const std::string& name) {
  return name.find('>') == std::string::npos ? "<" + name + ">" : "\"" + name + "\"";
}

MemoryHeaders without_current_folder(const MemoryHeaders& headers) {
  MemoryHeaders result;
  for (const auto& [name, text] : headers) {
    const auto spell = [&, &own_name = name](const IncludeDirective& include) {
      if (!include.quoted) return std::string();
      const std::string meant = header_meant(headers, own_name, include);
      return bracketed(meant.empty() ? include.name : meant);
    };
    result.emplace(name, with_includes_renamed(text, spell));
  }
  return result;
}

}  // namespace kernwright
