// The table of the library's own device headers.
#include "jit/source/builtin_headers.h"

#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/format.h"
#include "jit/source/include_closure.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

constexpr std::string_view kStem = "kernwright/";

struct Header {
  std::string text;
  std::optional<bool> asks_for_arch_specific;  ///< once somebody wanted to know
};

struct Table {
  std::mutex mutex;
  std::map<std::string, Header> headers;
};

Table& table() {
  static Table& instance = *new Table;  // kept to the end of the process on purpose
  return instance;
}

/// The headers included by one of the library's own: there such a line has one form.
std::vector<std::string> builtin_includes(std::string_view text) {
  constexpr std::string_view kLine = "#include <";
  std::vector<std::string> names;
  for (auto at = text.find(kLine); at != std::string_view::npos; at = text.find(kLine, at + 1)) {
    const auto begin = at + kLine.size(), end = text.find('>', begin);
    if (end == std::string_view::npos) break;
    names.emplace_back(text.substr(begin, end - begin));
  }
  return names;
}

/// Whether a header or one of its includes asks. The caller holds the table's lock.
bool header_asks(Header& header) {
  if (header.asks_for_arch_specific) return *header.asks_for_arch_specific;
  bool asks = asks_for_arch_specific(header.text);
  header.asks_for_arch_specific = asks;  // one that comes round again adds nothing
  for (const std::string& name : builtin_includes(header.text)) {
    const auto found = table().headers.find(name);
    if (found != table().headers.end()) asks = header_asks(found->second) || asks;
  }
  header.asks_for_arch_specific = asks;
  return asks;
}

}  // namespace

void add_builtin_header(const std::string& name, std::string text) {
  if (!name.starts_with(kStem)) {
    throw InvalidArgument(format("device header \"{}\" does not begin with {}", name, kStem));
  }
  const std::lock_guard lock(table().mutex);
  table().headers[name] = {std::move(text), std::nullopt};
}

std::map<std::string, std::string> builtin_headers() {
  const std::lock_guard lock(table().mutex);
  std::map<std::string, std::string> all;
  for (const auto& [name, header] : table().headers) all.emplace(name, header.text);
  return all;
}

std::optional<bool> builtin_asks_for_arch_specific(const std::string& name,
                                                   const std::string& text) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().headers.find(name);
  if (found == table().headers.end() || found->second.text != text) return std::nullopt;
  return header_asks(found->second);
}

ProgramOptions with_builtin_headers(const Source& source, ProgramOptions options) {
  const bool sees_files = !options.include_dirs.empty() || !source.directory.empty();
  const auto mentions = [](const std::string& text) {
    return text.find(kStem) != std::string::npos;
  };
  std::vector<std::string> pending;  // names
  const auto take_includes = [&](const std::string& text) {
    if (!mentions(text)) return;
    for (const IncludeDirective& include : tokenize(text).includes)
      pending.emplace_back(include.name);
  };
  take_includes(source.text);
  for (const auto& [name, text] : options.headers) take_includes(text);
  if (pending.empty() && !sees_files) return options;
  if (sees_files) {
    std::map<std::string, std::string> known = builtin_headers();
    options.headers.merge(known);
    return options;
  }
  const std::lock_guard lock(table().mutex);
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    const auto found = table().headers.find(name);
    if (found == table().headers.end()) continue;
    const std::string& text = found->second.text;
    if (!options.headers.emplace(name, text).second) continue;
    for (std::string& include : builtin_includes(text)) pending.push_back(std::move(include));
  }
  return options;
}

}  // namespace kernwright
