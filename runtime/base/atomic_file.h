// Files that appear whole or not at all, within one open directory.
#pragma once

#include "base/file_system.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kernwright {

/// Writes `bytes` to a temporary file (new, no link followed), brings it to the disk and
/// renames it to `name`. Readers see the old file, the new one or none. 0, or -errno of the step
/// that failed; then nothing of this call is left behind.
int write_atomically(FileSystem& system, int directory, const std::string& name,
                     std::span<const std::byte> bytes, mode_t mode = 0600);

/// Whether the name is that of a temporary file of write_atomically().
bool is_temporary_name(std::string_view name) noexcept;

/// Removes temporary files of ended processes, and those older than an hour. Returns the count.
int remove_stale_temporaries(FileSystem& system, int directory);

}  // namespace kernwright
