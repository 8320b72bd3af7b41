// The table of the library's own device headers.
#include "jit/source/builtin_headers.h"

#include <mutex>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/format.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

constexpr std::string_view kStem = "kernwright/";

struct Table {
  std::mutex mutex;
  std::map<std::string, std::string> headers;
};

Table& table() {
  static Table& instance = *new Table;  // kept to the end of the process on purpose
  return instance;
}

}  // namespace

void add_builtin_header(const std::string& name, std::string text) {
  if (!name.starts_with(kStem)) {
    throw InvalidArgument(format("device header \"{}\" does not begin with {}", name, kStem));
  }
  const std::lock_guard lock(table().mutex);
  table().headers[name] = std::move(text);
}

std::map<std::string, std::string> builtin_headers() {
  const std::lock_guard lock(table().mutex);
  return table().headers;
}

ProgramOptions with_builtin_headers(const Source& source, ProgramOptions options) {
  const bool sees_files = !options.include_dirs.empty() || !source.directory.empty();
  const auto mentions = [](const std::string& text) {
    return text.find(kStem) != std::string::npos;
  };
  std::vector<std::string> pending;
  if (mentions(source.text)) pending.push_back(source.text);
  for (const auto& [name, text] : options.headers) {
    if (mentions(text)) pending.push_back(text);
  }
  if (pending.empty() && !sees_files) return options;
  std::map<std::string, std::string> known = builtin_headers();
  if (sees_files) {
    options.headers.merge(known);
    return options;
  }
  while (!pending.empty()) {
    const std::string text = std::move(pending.back());
    pending.pop_back();
    for (const IncludeDirective& include : tokenize(text).includes) {
      const auto found = known.find(std::string(include.name));
      if (found == known.end()) continue;
      if (options.headers.insert(*found).second) pending.push_back(found->second);
    }
  }
  return options;
}

}  // namespace kernwright
