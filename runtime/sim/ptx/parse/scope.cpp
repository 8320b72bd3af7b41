// Scopes of a function body.
#include "sim/ptx/parse/scope.h"

#include <charconv>

namespace kernwright::sim::ptx {

bool ScopeStack::declare(std::string_view name, LocalName what) {
  return scopes_.back().names.emplace(name, what).second;
}

bool ScopeStack::declare_range(std::string_view prefix, std::uint32_t count, std::uint32_t first,
                               std::uint8_t parts) {
  return scopes_.back().ranges.emplace(prefix, Range{count, first, parts}).second;
}

bool ScopeStack::declare_label(std::string_view name, std::uint32_t label) {
  return scopes_.back().labels.emplace(name, label).second;
}

std::optional<LocalName> ScopeStack::find_in(const Scope& scope, std::string_view name) {
  if (const auto found = scope.names.find(name); found != scope.names.end()) return found->second;
  if (scope.ranges.empty()) return std::nullopt;
  // The number may be any run of trailing digits: %r1<5> declares %r10 .. %r14.
  for (std::size_t split = name.size(); split-- > 1;) {
    const char digit = name[split];
    if (digit < '0' || digit > '9' || name.size() - split > 9) break;
    if (digit == '0' && split + 1 < name.size()) continue;
    const auto found = scope.ranges.find(name.substr(0, split));
    if (found == scope.ranges.end()) continue;
    std::uint32_t number = 0;
    std::from_chars(name.data() + split, name.data() + name.size(), number);
    if (number < found->second.count) {
      const Range& range = found->second;
      return LocalName{LocalName::Kind::reg, range.first + number * range.parts, range.parts};
    }
  }
  return std::nullopt;
}

std::optional<LocalName> ScopeStack::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (std::optional<LocalName> found = find_in(*scope, name)) return found;
  }
  return std::nullopt;
}

}  // namespace kernwright::sim::ptx
