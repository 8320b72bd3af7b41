// Turning a launch site into "file:line".
#include "core/launch/launch_site.h"

#include <string_view>

#include "base/format.h"

namespace kernwright {
namespace {

/// The folder that this library was built in, with its last "/"; empty if compilers were told to
/// leave it out.
consteval std::string_view source_root() {
  std::string_view root = __FILE__;
  constexpr std::string_view kThisFile = "runtime/core/launch/launch_site.cpp";
  if (!root.ends_with(kThisFile)) return {};
  root.remove_suffix(kThisFile.size());
  return root;
}

/// Files of this library are named from its root on: their folders are those of another machine.
SourceLocation resolve_literal(const void* origin, std::uint64_t position) {
  std::string_view file = static_cast<const char*>(origin);
  if (file.starts_with(source_root())) file.remove_prefix(source_root().size());
  return {std::string(file), static_cast<int>(position)};
}

}  // namespace

LaunchSite LaunchSite::here(const char* file, int line) noexcept {
  return {file, static_cast<std::uint64_t>(line), resolve_literal};
}

std::string LaunchSite::to_string() const noexcept {
  if (resolve == nullptr) return {};
  try {
    const SourceLocation location = resolve(origin, position);
    if (location.file.empty()) return {};
    if (location.line == 0) return location.file;
    return format("{}:{}", location.file, location.line);
  } catch (...) {
    // A message about a failed launch must not be lost because its place cannot be told.
    return {};
  }
}

}  // namespace kernwright
