// The file format of the disk cache's entries.
#pragma once

#include "jit/cache/cache_key.h"
#include "jit/object_code.h"
#include "jit/source/include_closure.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

/// A folder of CUDA's headers as it was when they were read.
struct HeaderFolder {
  std::string path;
  std::uint64_t stamp = 0;  ///< of its files that change with every release
  bool operator==(const HeaderFolder&) const = default;
};

std::vector<HeaderFolder> header_folders_of(const std::vector<std::string>& paths);

struct CacheEntry {
  std::string key_fields;
  IncludeClosure included;
  std::vector<HeaderFolder> header_folders;
  std::string source;        ///< name of the source, for lists
  std::string object_bytes;  ///< ObjectCode::serialize()
};

/// Raised when the format changes; entries of another version are not read.
inline constexpr std::uint32_t kCacheEntryVersion = 1;
/// Largest entry in bytes; larger ones are neither stored nor read.
inline constexpr std::uint64_t kMaxCacheEntry = std::uint64_t{256} << 20;

/// Magic, version, length of the body, SHA-256 of these and the body, body.
std::vector<std::byte> encode_entry(const CacheEntry& entry);
/// Throws Error for anything but a whole entry of this version.
CacheEntry decode_entry(std::span<const std::byte> bytes);

/// Whether both mean the same files with the same contents.
bool same_headers(const IncludeClosure& a, const IncludeClosure& b);

}  // namespace kernwright
