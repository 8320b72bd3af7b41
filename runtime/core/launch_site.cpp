// Turning a launch site into "file:line".
#include "core/launch_site.h"

#include "base/format.h"

namespace kernwright {
namespace {

SourceLocation resolve_source_location(const void* origin, std::uint64_t position) {
  return {static_cast<const char*>(origin), static_cast<int>(position)};
}

}  // namespace

LaunchSite LaunchSite::here(std::source_location at) noexcept {
  return {at.file_name(), at.line(), resolve_source_location};
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
