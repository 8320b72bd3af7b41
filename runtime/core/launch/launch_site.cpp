// Turning a launch site into "file:line".
#include "core/launch/launch_site.h"

#include "base/format.h"

namespace kernwright {
namespace {

SourceLocation resolve_literal(const void* origin, std::uint64_t position) {
  return {static_cast<const char*>(origin), static_cast<int>(position)};
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
