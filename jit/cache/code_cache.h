// The layers between a compile request and NVRTC: memory, packs, disk.
#pragma once

#include "jit/cache/cache_key.h"
#include "jit/cache/compiler_finder.h"
#include "jit/cache/disk_cache.h"
#include "jit/compile/target.h"
#include "jit/found_code.h"
#include "jit/source/kernel_scanner.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

enum class CacheMode { off, memory, disk };

/// The wanted kind of code.
struct TargetRequest {
  std::optional<DeviceTarget> device;  ///< else code of `kind` without a device
  CodeKind kind = CodeKind::cubin;
  std::string arch;
};

/// One compile, before its target is known. Refers to the program's own fields.
struct CodeRequest {
  const Source& source;
  const ProgramOptions& options;
  const ScannedSource& declared;
  const ProgramFields& fields;
  TargetRequest target;
  bool with_lines = false;  ///< line numbers whatever the options say
  std::vector<std::string> names = {};
  bool with_declared = true;
  bool use_packs = true;
  bool with_members = true;  ///< of structs, as CompileRequest has it
};

/// Counts of one process.
struct CodeCacheStats {
  std::uint64_t memory_hits = 0;  ///< also callers that waited for another thread's compile
  std::uint64_t disk_hits = 0;
  std::uint64_t pack_hits = 0;
  std::uint64_t misses = 0;     ///< requests that no layer could answer
  std::uint64_t compiles = 0;   ///< that succeeded
  std::uint64_t stored = 0;     ///< entries written to the disk
  std::uint64_t rejected = 0;   ///< entries on the disk that could not be used
  std::uint64_t evictions = 0;  ///< from memory and from the disk
  std::uint64_t memory_entries = 0;
  std::uint64_t memory_bytes = 0;
};

/// Thread-safe. Simultaneous requests for the same code compile it once.
class CodeCache {
 public:
  using Code = std::shared_ptr<const ObjectCode>;

  struct Options {
    CacheMode mode = CacheMode::disk;
    DiskCacheOptions disk;
    std::size_t max_entries = 1024;
    std::size_t max_bytes = std::size_t{256} << 20;
    CompilerSource compiler;
  };

  explicit CodeCache(Options options);
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  /// The code, from the first layer that has it or from the compiler. Lines of its diagnostics
  /// count within the source's file. Throws the errors of Compiler::compile, NvrtcNotFound,
  /// InvalidArgument.
  FoundCode get(const CodeRequest& request);

  /// For code of get() from a cache, refused by the driver: forgets it and compiles anew. No code
  /// if it did not come from the disk.
  FoundCode replace(const CodeRequest& request, const Code& refused);

  /// Whether the next request will probably load NVRTC: no cache remembers its identity, or no
  /// cache is kept between processes. False while packs are in use. Reads the disk.
  bool expects_compiler();

  CodeCacheStats stats() const;
  CacheMode mode() const noexcept;
  DiskCache& disk() noexcept;
  void clear_memory();

  /// The cache for the current values of KERNWRIGHT_CACHE, KERNWRIGHT_CACHE_DIR and
  /// KERNWRIGHT_CACHE_LIMIT; one per distinct set of values, never destroyed. Throws
  /// InvalidArgument for invalid values.
  static CodeCache& process();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Once per process: lets a compile service prepare its NVRTC if expects_compiler(), without
/// waiting. Errors appear only in the compile itself. Never throws.
void prefetch_compiler() noexcept;

/// Finds the cache's folders and the compiler before the first request, if a cache exists: for use
/// during other slow steps. Loads nothing, and makes only folders within this cache. False if the
/// request will probably load NVRTC; never throws.
bool look_ahead() noexcept;

}  // namespace kernwright
